// Messages as rosidl_generator_cpp makes them, for the scenarios.
#include "drive.h"

#include "example_interfaces/srv/add_two_ints.hpp"
#include "rosidl_typesupport_cpp/message_type_support.hpp"
#include "rosidl_typesupport_cpp/service_type_support.hpp"
#include "rosidl_typesupport_introspection_cpp/message_type_support_decl.hpp"
#include "rosidl_typesupport_introspection_cpp/service_type_support_decl.hpp"
#include "sensor_msgs/msg/image.hpp"
#include "std_msgs/msg/string.hpp"
#include "std_msgs/msg/u_int64.hpp"

namespace {

using Text = std_msgs::msg::String;
using Image = sensor_msgs::msg::Image;
using Number = std_msgs::msg::UInt64;
using AddTwoInts = example_interfaces::srv::AddTwoInts;
using Request = AddTwoInts::Request;
using Response = AddTwoInts::Response;

template <typename M> const rosidl_message_type_support_t *support() {
    return dispatching ? rosidl_typesupport_cpp::get_message_type_support_handle<M>()
                       : rosidl_typesupport_introspection_cpp::get_message_type_support_handle<M>();
}

template <typename M> void *make() { return new M(); }

template <typename M> void drop(void *message) { delete static_cast<M *>(message); }

template <typename M> constexpr message_type type(const char *name) { return {name, support<M>, make<M>, drop<M>}; }

} // namespace

extern "C" {

const char *const LANGUAGE = "C++";

const message_type TEXT = type<Text>("std_msgs/msg/String");
const message_type IMAGE = type<Image>("sensor_msgs/msg/Image");
const message_type NUMBER = type<Number>("std_msgs/msg/UInt64");
const message_type REQUEST = type<Request>("example_interfaces/srv/AddTwoInts_Request");
const message_type RESPONSE = type<Response>("example_interfaces/srv/AddTwoInts_Response");

void text_set(void *text, const char *words) { static_cast<Text *>(text)->data = words; }

const char *text_get(const void *text) { return static_cast<const Text *>(text)->data.c_str(); }

uint8_t *image_set(void *message, int32_t number, const char *frame, uint32_t width, uint32_t height) {
    auto &image = *static_cast<Image *>(message);
    image.header.stamp.sec = number;
    image.header.frame_id = frame;
    image.encoding = "rgb8";
    image.width = width;
    image.height = height;
    image.step = 3 * width;
    image.data.resize(static_cast<size_t>(3) * width * height);
    return image.data.data();
}

const uint8_t *image_get(const void *message, int32_t *number, const char **frame, size_t *bytes) {
    const auto &image = *static_cast<const Image *>(message);
    *number = image.header.stamp.sec;
    *frame = image.header.frame_id.c_str();
    *bytes = image.data.size();
    return image.data.data();
}

void number_set(void *message, uint64_t number) { static_cast<Number *>(message)->data = number; }

uint64_t number_get(const void *message) { return static_cast<const Number *>(message)->data; }

const rosidl_service_type_support_t *add_two_ints(void) {
    return dispatching ? rosidl_typesupport_cpp::get_service_type_support_handle<AddTwoInts>()
                       : rosidl_typesupport_introspection_cpp::get_service_type_support_handle<AddTwoInts>();
}

void request_set(void *message, int64_t a, int64_t b) {
    auto &request = *static_cast<Request *>(message);
    request.a = a;
    request.b = b;
}

void request_get(const void *message, int64_t *a, int64_t *b) {
    const auto &request = *static_cast<const Request *>(message);
    *a = request.a;
    *b = request.b;
}

void response_set(void *response, int64_t sum) { static_cast<Response *>(response)->sum = sum; }

int64_t response_get(const void *response) { return static_cast<const Response *>(response)->sum; }

} // extern "C"
