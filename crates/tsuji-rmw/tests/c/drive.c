// Messages as rosidl_generator_c makes them, for the scenarios.
#include "drive.h"

#include "example_interfaces/srv/add_two_ints.h"
#include "rosidl_runtime_c/primitives_sequence_functions.h"
#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_typesupport_interface/macros.h"
#include "sensor_msgs/msg/image.h"
#include "std_msgs/msg/string.h"
#include "std_msgs/msg/u_int64.h"

#include <stdio.h>
#include <stdlib.h>

const char *const LANGUAGE = "C";

#define MESSAGE_SUPPORT(SUPPORT, PACKAGE, KIND, NAME)                                                                  \
    ROSIDL_TYPESUPPORT_INTERFACE__MESSAGE_SYMBOL_NAME(SUPPORT, PACKAGE, KIND, NAME)
#define SERVICE_SUPPORT(SUPPORT, PACKAGE, KIND, NAME)                                                                  \
    ROSIDL_TYPESUPPORT_INTERFACE__SERVICE_SYMBOL_NAME(SUPPORT, PACKAGE, KIND, NAME)

#define MESSAGE(TYPE, PACKAGE, KIND, NAME)                                                                             \
    const rosidl_message_type_support_t *MESSAGE_SUPPORT(rosidl_typesupport_c, PACKAGE, KIND, NAME)(void);             \
    const rosidl_message_type_support_t *MESSAGE_SUPPORT(rosidl_typesupport_introspection_c, PACKAGE, KIND,            \
                                                         NAME)(void);                                                  \
    static const rosidl_message_type_support_t *TYPE##_support(void) {                                                 \
        return dispatching ? MESSAGE_SUPPORT(rosidl_typesupport_c, PACKAGE, KIND, NAME)()                              \
                           : MESSAGE_SUPPORT(rosidl_typesupport_introspection_c, PACKAGE, KIND, NAME)();               \
    }                                                                                                                  \
    static void *TYPE##_make(void) { return PACKAGE##__##KIND##__##NAME##__create(); }                                 \
    static void TYPE##_drop(void *message) { PACKAGE##__##KIND##__##NAME##__destroy(message); }                        \
    const struct message_type TYPE = {#PACKAGE "/" #KIND "/" #NAME, TYPE##_support, TYPE##_make, TYPE##_drop};

MESSAGE(TEXT, std_msgs, msg, String)
MESSAGE(IMAGE, sensor_msgs, msg, Image)
MESSAGE(NUMBER, std_msgs, msg, UInt64)
MESSAGE(REQUEST, example_interfaces, srv, AddTwoInts_Request)
MESSAGE(RESPONSE, example_interfaces, srv, AddTwoInts_Response)

static void no_memory(bool is_there) {
    if (!is_there) {
        puts("failed: no memory for a message");
        exit(1);
    }
}

void text_set(void *text, const char *words) {
    no_memory(rosidl_runtime_c__String__assign(&((std_msgs__msg__String *)text)->data, words));
}

const char *text_get(const void *text) { return ((const std_msgs__msg__String *)text)->data.data; }

uint8_t *image_set(void *message, int32_t number, const char *frame, uint32_t width, uint32_t height) {
    sensor_msgs__msg__Image *image = message;
    image->header.stamp.sec = number;
    no_memory(rosidl_runtime_c__String__assign(&image->header.frame_id, frame));
    no_memory(rosidl_runtime_c__String__assign(&image->encoding, "rgb8"));
    image->width = width;
    image->height = height;
    image->step = 3 * width;
    size_t bytes = (size_t)3 * width * height;
    if (image->data.size != bytes) {
        rosidl_runtime_c__uint8__Sequence__fini(&image->data);
        no_memory(rosidl_runtime_c__uint8__Sequence__init(&image->data, bytes));
    }
    return image->data.data;
}

const uint8_t *image_get(const void *message, int32_t *number, const char **frame, size_t *bytes) {
    const sensor_msgs__msg__Image *image = message;
    *number = image->header.stamp.sec;
    *frame = image->header.frame_id.data;
    *bytes = image->data.size;
    return image->data.data;
}

void number_set(void *message, uint64_t number) { ((std_msgs__msg__UInt64 *)message)->data = number; }

uint64_t number_get(const void *message) { return ((const std_msgs__msg__UInt64 *)message)->data; }

const rosidl_service_type_support_t *SERVICE_SUPPORT(rosidl_typesupport_c, example_interfaces, srv, AddTwoInts)(void);
const rosidl_service_type_support_t *SERVICE_SUPPORT(rosidl_typesupport_introspection_c, example_interfaces, srv,
                                                     AddTwoInts)(void);

const rosidl_service_type_support_t *add_two_ints(void) {
    return dispatching ? SERVICE_SUPPORT(rosidl_typesupport_c, example_interfaces, srv, AddTwoInts)()
                       : SERVICE_SUPPORT(rosidl_typesupport_introspection_c, example_interfaces, srv, AddTwoInts)();
}

void request_set(void *message, int64_t a, int64_t b) {
    example_interfaces__srv__AddTwoInts_Request *request = message;
    request->a = a;
    request->b = b;
}

void request_get(const void *message, int64_t *a, int64_t *b) {
    const example_interfaces__srv__AddTwoInts_Request *request = message;
    *a = request->a;
    *b = request->b;
}

void response_set(void *response, int64_t sum) {
    ((example_interfaces__srv__AddTwoInts_Response *)response)->sum = sum;
}

int64_t response_get(const void *response) {
    return ((const example_interfaces__srv__AddTwoInts_Response *)response)->sum;
}
