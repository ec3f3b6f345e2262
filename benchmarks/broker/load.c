/* A load generator that costs little itself: one thread, one epoll, frames that were built before.

     load requests PORT CONNECTIONS IN_FLIGHT SECONDS MAX_BYTES FRAMES EPOCH_AT ERROR_AT...
         Each connection sends the frames of the file over and over and keeps IN_FLIGHT of them unanswered. It ends
         after SECONDS, or when MAX_BYTES have been moved; below 0 that is the number of requests instead. Where EPOCH_AT is not -1, an int32 that counts up from 1 is
         put there in each request. At every ERROR_AT of a response stands an int16 that ought to be 0.

     load latency PORT PRODUCERS RATE SECONDS PRODUCE FETCH OFFSET_AT OFFSET
         Produce requests leave at RATE a second, in turn on PRODUCERS connections; a consumer on one more waits for
         them, from OFFSET on, which is put at OFFSET_AT of its request. The time from when a request was due to when
         the consumer has its records counts. Layouts are those of Produce v13 and Fetch v13 to v17 of one partition.

   One line of JSON says what came of it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SCRATCH = 1 << 20, HEAD = 128, GATHER = 64, ERRORS_MAX = 4 };

typedef struct {
    int fd, armed;
    int outstanding;
    long next;            /* which frame leaves next */
    size_t frame_sent;    /* bytes of it that have left */
    uint32_t epoch;
    char *patched;        /* its own copy of the frame, where something is put into it */
    uint8_t head[HEAD];   /* the start of the response that is being received */
    size_t have;          /* bytes of its size and content so far */
    size_t size;          /* of its content, once known */
    int64_t *due;         /* a ring: when the unanswered requests left, or should have */
    long due_first, due_next;
} Conn;

static char *scratch;
static char **frames;
static size_t *frame_sizes;
static long frame_count;
static int64_t *samples;
static long sample_count, sample_room;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint64_t big(const uint8_t *p, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | p[i];
    return value;
}

static void put_big(char *p, uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; i--, value >>= 8) p[i] = (char)value;
}

static void note(int64_t ns) {
    if (sample_count == sample_room) {
        sample_room = sample_room ? 2 * sample_room : 1 << 16;
        samples = realloc(samples, sample_room * sizeof *samples);
    }
    samples[sample_count++] = ns;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile_us(double share) {
    if (!sample_count) return 0;
    long at = (long)(share * sample_count);
    return samples[at < sample_count ? at : sample_count - 1] / 1e3;
}

static void tell(long requests, double sent, double received, double wall_s, long errors) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    qsort(samples, sample_count, sizeof *samples, by_size);
    printf("{\"requests\": %ld, \"sent\": %.0f, \"received\": %.0f, \"wall_s\": %.6f, \"cpu_s\": %.6f, \"errors\": %ld, "
           "\"samples\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}\n",
           requests, sent, received, wall_s, cpu, errors, sample_count, percentile_us(0.5), percentile_us(0.99),
           percentile_us(0.999), percentile_us(1));
}

static void load_frames(const char *path) {
    int fd = open(path, O_RDONLY);
    struct stat about;
    if (fd < 0 || fstat(fd, &about)) fail(path);
    char *data = malloc(about.st_size);
    for (ssize_t have = 0, got; have < about.st_size; have += got)
        if ((got = read(fd, data + have, about.st_size - have)) <= 0) fail(path);
    close(fd);
    frame_count = 0;
    for (off_t at = 0; at < about.st_size; at += 4 + big((uint8_t *)data + at, 4)) frame_count++;
    frames = malloc(frame_count * sizeof *frames);
    frame_sizes = malloc(frame_count * sizeof *frame_sizes);
    off_t at = 0;
    for (long i = 0; i < frame_count; i++) {
        frames[i] = data + at;
        frame_sizes[i] = 4 + big((uint8_t *)data + at, 4);
        at += frame_sizes[i];
    }
}

static Conn *connect_all(int port, int count, int in_flight, int poll) {
    Conn *conns = calloc(count, sizeof *conns);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1;
    for (int i = 0; i < count; i++) {
        Conn *c = &conns[i];
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c->fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(c->fd, F_SETFL, O_NONBLOCK);
        c->due = malloc(in_flight * sizeof *c->due);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
    }
    return conns;
}

static void arm(Conn *c, int poll, int writing) {
    if (c->armed == writing) return;
    c->armed = writing;
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &event)) fail("epoll_ctl");
}

/* Receives what is there; each whole response goes to `answered`. */
static size_t receive(Conn *c, void (*answered)(Conn *, const uint8_t *content, size_t size), int whole) {
    size_t total = 0;
    for (;;) {
        ssize_t got;
        char *into = scratch;
        if (whole && c->have >= 4) { /* responses that are looked into are put together in c->patched's place */
            into = c->patched + (c->have - 4);
            got = recv(c->fd, into, c->size - (c->have - 4), 0);
        } else {
            got = recv(c->fd, into, whole ? 4 - c->have : SCRATCH, 0);
        }
        if (got < 0) {
            if (errno == EAGAIN) return total;
            fail("recv");
        }
        if (!got) {
            fprintf(stderr, "the broker closed a connection\n");
            exit(1);
        }
        total += got;
        ssize_t at = 0;
        while (at < got) {
            if (c->have < 4) {
                c->head[c->have++] = into[at++];
                if (c->have == 4) {
                    c->size = big(c->head, 4);
                    if (whole) c->patched = realloc(c->patched, c->size);
                }
                continue;
            }
            size_t left = c->size - (c->have - 4);
            size_t here = (size_t)(got - at) < left ? (size_t)(got - at) : left;
            if (!whole && c->have < HEAD) {
                size_t copied = here < HEAD - c->have ? here : HEAD - c->have;
                memcpy(c->head + c->have, into + at, copied);
            }
            c->have += here;
            at += here;
            if (c->have - 4 == c->size) {
                c->have = 0;
                answered(c, whole ? (uint8_t *)c->patched : c->head + 4, c->size);
            }
        }
        if (!whole && got < SCRATCH) return total;
    }
}

/* ---------------------------------------------------------------------------------------------------- requests */

static int in_flight, epoch_at, error_at[ERRORS_MAX], error_places;
static long answers, errors;
static double sent_bytes, received_bytes;
static long requests_max;
static int stopping;

static void send_frames(Conn *c, int poll) {
    if (requests_max && answers + c->outstanding >= requests_max) stopping = 1;
    while (!stopping || c->frame_sent) {
        struct iovec parts[GATHER];
        int count = 0;
        int room = in_flight - c->outstanding + (c->frame_sent ? 1 : 0); /* one that has begun to leave is counted */
        if ((stopping || epoch_at >= 0) && room > 1) room = 1;
        for (long next = c->next; count < GATHER && count < room; count++, next++) {
            char *frame = frames[next % frame_count];
            if (epoch_at >= 0 && !c->frame_sent) {
                if (!c->patched) memcpy(c->patched = malloc(frame_sizes[0]), frame, frame_sizes[0]);
                put_big(c->patched + epoch_at, ++c->epoch, 4);
            }
            if (epoch_at >= 0) frame = c->patched;
            size_t skip = count ? 0 : c->frame_sent;
            parts[count].iov_base = frame + skip;
            parts[count].iov_len = frame_sizes[next % frame_count] - skip;
        }
        if (!count) break;
        int64_t now = now_ns();
        ssize_t sent = writev(c->fd, parts, count);
        if (sent < 0) {
            if (errno != EAGAIN) fail("send");
            arm(c, poll, 1);
            return;
        }
        sent_bytes += sent;
        for (int i = 0; i < count && sent > 0; i++) {
            if (!c->frame_sent) {
                c->due[c->due_next++ % in_flight] = now;
                c->outstanding++;
            }
            if ((size_t)sent < parts[i].iov_len) {
                c->frame_sent += sent;
                arm(c, poll, 1);
                return;
            }
            sent -= parts[i].iov_len;
            c->frame_sent = 0;
            c->next++;
        }
    }
    arm(c, poll, 0);
}

static void answered_request(Conn *c, const uint8_t *content, size_t size) {
    note(now_ns() - c->due[c->due_first++ % in_flight]);
    c->outstanding--;
    answers++;
    for (int i = 0; i < error_places; i++)
        if ((size_t)error_at[i] + 2 <= size && big(content + error_at[i], 2)) errors++;
}

static int run_requests(char **args, int count) {
    int port = atoi(args[0]), connections = atoi(args[1]);
    in_flight = atoi(args[2]);
    double seconds = atof(args[3]), bytes_max = atof(args[4]);
    load_frames(args[5]);
    if (bytes_max < 0) {
        requests_max = (long)-bytes_max;
        bytes_max = 1e15;
    }
    epoch_at = atoi(args[6]);
    for (int i = 7; i < count && error_places < ERRORS_MAX; i++) error_at[error_places++] = atoi(args[i]);
    int poll = epoll_create1(0);
    Conn *conns = connect_all(port, connections, in_flight, poll);
    int64_t began = now_ns(), end = began + (int64_t)(seconds * 1e9), last = began;
    for (int i = 0; i < connections; i++) {
        conns[i].next = i;
        send_frames(&conns[i], poll);
    }
    long waiting = connections;
    struct epoll_event events[256];
    while (waiting) {
        int ready = epoll_wait(poll, events, 256, 1000);
        last = now_ns();
        if (!stopping && (last >= end || sent_bytes + received_bytes >= bytes_max)) stopping = 1;
        if (last > end + 20000000000LL) {
            fprintf(stderr, "%ld connections got no answer within 20 s\n", waiting);
            return 1;
        }
        for (int i = 0; i < ready; i++) {
            Conn *c = events[i].data.ptr;
            if (events[i].events & ~EPOLLOUT) received_bytes += receive(c, answered_request, 0);
            send_frames(c, poll);
        }
        if (stopping) {
            waiting = 0;
            for (int i = 0; i < connections; i++) waiting += conns[i].outstanding > 0;
        }
    }
    tell(answers, sent_bytes, received_bytes, (last - began) / 1e9, errors);
    return 0;
}

/* ----------------------------------------------------------------------------------------------------- latency */

static int64_t *due_at, *seen_at; /* by offset, from the first one on */
static int64_t first_offset, next_offset, offsets_max;
static int is_fetched;

static void answered_produce(Conn *c, const uint8_t *content, size_t size) {
    int64_t due = c->due[c->due_first++ % in_flight];
    c->outstanding--;
    if (size < 37 || big(content + 27, 2)) {
        errors++;
        return;
    }
    int64_t at = (int64_t)big(content + 29, 8) - first_offset;
    if (at >= 0 && at < offsets_max) due_at[at] = due;
    answers++;
}

static void answered_fetch(Conn *c, const uint8_t *content, size_t size) {
    int64_t now = now_ns();
    (void)c;
    is_fetched = 1;
    if (size < 69 || big(content + 9, 2)) {
        errors++;
        return;
    }
    if (content[15] != 2) return; /* no topic: nothing to tell */
    if (big(content + 37, 2)) { /* a topic that was just made may not be led yet */
        errors += next_offset > first_offset;
        return;
    }
    size_t at = 63;
    if (content[at++] > 1) { /* aborted transactions: there are none */
        errors++;
        return;
    }
    at += 4; /* preferred replica */
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
        length |= (uint64_t)(content[at] & 0x7f) << shift;
        if (!(content[at++] & 0x80)) break;
    }
    size_t stop = length ? at + length - 1 : at;
    while (at + 61 <= stop) {
        int64_t base = (int64_t)big(content + at, 8);
        uint32_t last_delta = (uint32_t)big(content + at + 23, 4);
        if (base >= next_offset) {
            if (base - first_offset < offsets_max) seen_at[base - first_offset] = now;
            next_offset = base + last_delta + 1;
        }
        at += 12 + big(content + at + 8, 4);
    }
}

static void send_all(Conn *c, const char *data, size_t size) {
    while (size) {
        ssize_t sent = send(c->fd, data, size, 0);
        if (sent < 0) {
            if (errno != EAGAIN) fail("send");
            continue;
        }
        data += sent;
        size -= sent;
    }
}

static int run_latency(char **args) {
    int port = atoi(args[0]), producers = atoi(args[1]);
    double rate = atof(args[2]), seconds = atof(args[3]);
    load_frames(args[5]);
    char *fetch = frames[0];
    size_t fetch_size = frame_sizes[0];
    load_frames(args[4]);
    int offset_at = atoi(args[6]);
    first_offset = next_offset = atoll(args[7]);
    long requests = (long)(rate * seconds);
    offsets_max = requests * 64;
    due_at = calloc(offsets_max, sizeof *due_at);
    seen_at = calloc(offsets_max, sizeof *seen_at);
    in_flight = (int)requests + 1;
    int poll = epoll_create1(0);
    Conn *conns = connect_all(port, producers + 1, in_flight, poll);
    Conn *consumer = &conns[producers];
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    int64_t step = (int64_t)(1e9 / rate), began = now_ns() + 200000000;
    struct itimerspec when = {.it_value = {began / 1000000000, began % 1000000000},
                              .it_interval = {step / 1000000000, step % 1000000000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
    put_big(fetch + offset_at, next_offset, 8);
    send_all(consumer, fetch, fetch_size);
    long sent = 0;
    int64_t give_up = began + (int64_t)((seconds + 30) * 1e9);
    struct epoll_event events[256];
    int64_t end_offset = -1;
    while (end_offset < 0 || next_offset < end_offset) {
        int ready = epoll_wait(poll, events, 256, 1000);
        int64_t now = now_ns();
        if (now > give_up) {
            fprintf(stderr, "the last records did not come within 30 s\n");
            return 1;
        }
        for (int i = 0; i < ready; i++) {
            Conn *c = events[i].data.ptr;
            if (!c) {
                uint64_t ticks;
                if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) fail("timer");
                for (; sent < requests && began + sent * step <= now; sent++) {
                    Conn *p = &conns[sent % producers];
                    p->due[p->due_next++ % in_flight] = began + sent * step;
                    p->outstanding++;
                    send_all(p, frames[sent % frame_count], frame_sizes[sent % frame_count]);
                }
            } else if (c == consumer) {
                received_bytes += receive(c, answered_fetch, 1);
                if (is_fetched) {
                    is_fetched = 0;
                    put_big(fetch + offset_at, next_offset, 8);
                    send_all(consumer, fetch, fetch_size);
                }
            } else {
                received_bytes += receive(c, answered_produce, 0);
            }
        }
        if (errors > 1000) break;
        if (sent == requests && answers + errors >= requests) { /* all are placed: wait for the last of them */
            for (int64_t at = offsets_max - 1; at >= 0 && end_offset < 0; at--)
                if (due_at[at]) end_offset = first_offset + at + 1;
            if (end_offset < 0) break;
        }
    }
    for (int64_t at = 0; at < offsets_max; at++)
        if (due_at[at] && seen_at[at]) note(seen_at[at] - due_at[at]);
    tell(answers, (double)sent * frame_sizes[0], received_bytes, (now_ns() - began) / 1e9, errors);
    return 0;
}

int main(int count, char **args) {
    scratch = malloc(SCRATCH);
    if (count >= 9 && !strcmp(args[1], "requests")) return run_requests(args + 2, count - 2);
    if (count == 10 && !strcmp(args[1], "latency")) return run_latency(args + 2);
    fprintf(stderr, "load requests … | load latency …: see load.c\n");
    return 2;
}
