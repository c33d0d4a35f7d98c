// librmw_tsuji_test_fixture.so: what ROS 2's rmw_test_fixture_implementation loads to keep a test apart from everything
// else on the host. Processes of tsuji meet in a folder of the host, and others by a domain: the test and whatever it
// starts get a folder of their own, a domain that no other test has, and no network.
//
// Its two functions are not for several threads at once: what they change is the environment.
#define _GNU_SOURCE
#include <ftw.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Of rmw, the same in every distribution.
typedef int rmw_ret_t;
enum { RMW_RET_OK = 0, RMW_RET_ERROR = 1 };

// As ROS 2's own fixture has it: a domain is taken by listening at a port, so that both take turns with each other.
enum { FIRST_PORT = 32769, DOMAINS = 101 };

enum { FOLDER, DOMAIN, RANGE, LOCALHOST, PEERS, VARIABLES };
static const char *const names[VARIABLES] = {
    "TSUJI_RUNTIME_DIR", "ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS",
};

static char *before[VARIABLES];
static char *folder;
static int claim = -1;

// Listens at the port of a domain that is free, and answers which; 0 where there is none. Domain 0 is nobody's.
static int claim_domain(void) {
    for (int domain = 1; domain <= DOMAINS; domain++) {
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in address = {
            .sin_family = AF_INET,
            .sin_port = htons(FIRST_PORT + domain - 1),
            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
        };
        if (listener < 0) {
            return 0;
        }
        if (bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0) {
            claim = listener;
            return domain;
        }
        close(listener);
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    remove(path);
    return 0;
}

// Puts everything back as it was.
static void restore(void) {
    for (int i = 0; i < VARIABLES; i++) {
        if (before[i]) {
            setenv(names[i], before[i], 1);
        } else {
            unsetenv(names[i]);
        }
        free(before[i]);
        before[i] = NULL;
    }
    if (folder) {
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        free(folder);
        folder = NULL;
    }
    if (claim != -1) {
        close(claim);
        claim = -1;
    }
}

// Keeps what is made from here on apart; an error where it is already.
__attribute__((visibility("default"))) rmw_ret_t rmw_test_isolation_start(void) {
    if (claim != -1) {
        fputs("rmw_tsuji: the test is isolated already; rmw_test_isolation_stop ends that\n", stderr);
        return RMW_RET_ERROR;
    }
    for (int i = 0; i < VARIABLES; i++) {
        const char *value = getenv(names[i]);
        before[i] = value ? strdup(value) : NULL;
    }
    const char *parent = getenv("TMPDIR");
    char domain[8];
    int number = claim_domain();
    if (asprintf(&folder, "%s/rmw_tsuji_XXXXXX", parent && *parent ? parent : "/tmp") < 0) {
        folder = NULL; // What it is then, nobody says.
    }
    bool is_made = number != 0 && folder && mkdtemp(folder) != NULL;
    snprintf(domain, sizeof domain, "%d", number);
    if (!is_made || setenv(names[FOLDER], folder, 1) != 0 || setenv(names[DOMAIN], domain, 1) != 0 ||
        setenv(names[RANGE], "LOCALHOST", 1) != 0 || unsetenv(names[LOCALHOST]) != 0 || unsetenv(names[PEERS]) != 0) {
        perror(number == 0 ? "rmw_tsuji: no domain is free" : "rmw_tsuji: the test cannot be isolated");
        restore();
        return RMW_RET_ERROR;
    }
    return RMW_RET_OK;
}

// Ends it. What was made meanwhile must have ended.
__attribute__((visibility("default"))) rmw_ret_t rmw_test_isolation_stop(void) {
    if (claim == -1) {
        return RMW_RET_OK;
    }
    restore();
    return RMW_RET_OK;
}
