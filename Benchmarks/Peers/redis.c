// Redis, a server of its own on the loopback, that appends each set to its file before it answers; one connection, one
// command at a time. With `power` the file is synced with every command.
#include "peer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int connection = -1;
static pid_t server;
static bool is_durable;

static void stop_server(void) {
    if (server > 0) kill(server, SIGKILL);
    if (server > 0) waitpid(server, NULL, 0);
}

static struct sockaddr_in address;

static void find_port(void) {
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    peer_check(bind(probe, (struct sockaddr *)&address, size) == 0, "bind");
    peer_check(getsockname(probe, (struct sockaddr *)&address, &size) == 0, "getsockname");
    close(probe);
}

static void send_all(const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = write(connection, bytes, count);
        peer_check(sent > 0, "sending");
        bytes += sent;
        count -= (size_t)sent;
    }
}

static char answer[4096];
static size_t answer_count;

// Reads until a whole line is there, and returns where the next begins.
static char *read_line(void) {
    answer_count = 0;
    for (;;) {
        char *end = memmem(answer, answer_count, "\r\n", 2);
        if (end) return end + 2;
        ssize_t count = read(connection, answer + answer_count, sizeof answer - answer_count);
        peer_check(count > 0, "receiving");
        answer_count += (size_t)count;
    }
}

static void command(const char *text) {
    send_all(text, strlen(text));
    read_line();
    peer_check(answer[0] == '+', text);
}

void peer_open(const char *folder, bool survives_power_loss) {
    is_durable = survives_power_loss;
    find_port();
    char port[16];
    snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
    server = fork();
    if (server == 0) {
        execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "",
               "--appendonly", "yes", "--appendfsync", "no", "--logfile", "/dev/null", "--daemonize", "no", NULL);
        _exit(127);
    }
    atexit(stop_server);
    for (int attempt = 0; attempt < 500; attempt++) {
        connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) == 0) break;
        close(connection);
        connection = -1;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    peer_check(connection >= 0, "connecting to redis-server");
    int yes = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    command("PING\r\n");
}

void peer_begin_fill(void) {}

void peer_end_fill(void) {
    if (is_durable) command("CONFIG SET appendfsync always\r\n");
}

void peer_set(uint64_t key, const char *value) {
    char text[512], name[24];
    int digits = snprintf(name, sizeof name, "%llu", (unsigned long long)key);
    int head = snprintf(text, sizeof text, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", digits, name, value_size);
    memcpy(text + head, value, value_size);
    memcpy(text + head + value_size, "\r\n", 2);
    send_all(text, (size_t)head + value_size + 2);
    read_line();
    peer_check(answer[0] == '+', "SET");
}

bool peer_get(uint64_t key, char *value) {
    char text[64], name[24];
    int digits = snprintf(name, sizeof name, "%llu", (unsigned long long)key);
    int count = snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", digits, name);
    send_all(text, (size_t)count);
    char *data = read_line();
    peer_check(answer[0] == '$', "GET");
    if (answer[1] == '-') return false;
    while (answer_count < (size_t)(data - answer) + value_size + 2) {
        ssize_t more = read(connection, answer + answer_count, sizeof answer - answer_count);
        peer_check(more > 0, "receiving");
        answer_count += (size_t)more;
    }
    memcpy(value, data, value_size);
    return true;
}

void peer_close(void) { close(connection); }
