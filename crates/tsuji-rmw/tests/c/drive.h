// What the scenarios know of the two kinds of messages that there are in ROS 2: those of rosidl_generator_c, which
// drive.c gives them, and those of rosidl_generator_cpp, which drive.cpp does. To the scenarios a message is a pointer,
// as it is to rcl.
#ifndef DRIVE_H_
#define DRIVE_H_

#include "rmw_tsuji_test.h"

#ifdef __cplusplus
extern "C" {
#endif

struct message_type {
    // As the graph shows it.
    const char *name;
    const rosidl_message_type_support_t *(*support)(void);
    void *(*make)(void);
    void (*drop)(void *message);
};

// "C" or "C++".
extern const char *const LANGUAGE;

// Whether type supports are those that rclcpp and rclpy hand over, which lead to one by its name, or those of
// introspection at once.
extern bool dispatching;

// std_msgs/msg/String
extern const struct message_type TEXT;
void text_set(void *text, const char *words);
const char *text_get(const void *text);

// sensor_msgs/msg/Image
extern const struct message_type IMAGE;
// Sets everything but the pixels, and gives their place, 3 * width * height bytes.
uint8_t *image_set(void *image, int32_t number, const char *frame, uint32_t width, uint32_t height);
const uint8_t *image_get(const void *image, int32_t *number, const char **frame, size_t *bytes);

// std_msgs/msg/UInt64, whose bytes in memory can be passed on as they are.
extern const struct message_type NUMBER;
void number_set(void *message, uint64_t number);
uint64_t number_get(const void *message);

// example_interfaces/srv/AddTwoInts
extern const struct message_type REQUEST;
extern const struct message_type RESPONSE;
const rosidl_service_type_support_t *add_two_ints(void);
void request_set(void *request, int64_t a, int64_t b);
void request_get(const void *request, int64_t *a, int64_t *b);
void response_set(void *response, int64_t sum);
int64_t response_get(const void *response);

#ifdef __cplusplus
}
#endif
#endif
