// Loads libraries that stand for those of a distribution, then librmw_tsuji.so, and asks it for options as rcl does, in
// memory of which not a byte may change where that is refused. It knows no layout of rmw.
//
// distribution LIBRARY [OTHER...]
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The same in all distributions.
typedef struct allocator {
    void *(*allocate)(size_t, void *);
    void (*deallocate)(void *, void *);
    void *(*reallocate)(void *, size_t, void *);
    void *(*zero_allocate)(size_t, size_t, void *);
    void *state;
} allocator;

static void *allocate(size_t size, void *state) { return (void)state, malloc(size); }
static void deallocate(void *pointer, void *state) { (void)state, free(pointer); }
static void *reallocate(void *pointer, size_t size, void *state) { return (void)state, realloc(pointer, size); }
static void *zero_allocate(size_t count, size_t size, void *state) { return (void)state, calloc(count, size); }

static void *opened(const char *path, int mode) {
    void *library = dlopen(path, mode);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return library;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        // As a Python extension loads what it is linked to: for itself.
        opened(argv[i], RTLD_NOW | RTLD_LOCAL);
    }
    int (*init)(void *, allocator);
    *(void **)&init = dlsym(opened(argv[1], RTLD_LAZY), "rmw_init_options_init");
    if (!init) {
        return 2;
    }
    // Much more than any distribution's options.
    static char options[4096], zero[sizeof options];
    int is = init(options, (allocator){allocate, deallocate, reallocate, zero_allocate, NULL});
    printf("%d %s\n", is, memcmp(options, zero, sizeof zero) == 0 ? "untouched" : "written");
    return 0;
}
