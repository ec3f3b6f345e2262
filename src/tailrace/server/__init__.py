"""The epoll loop, threads, clock and signals around the broker. May import: broker and below."""
