"""The loop: one thread waits for sockets, timers and other threads, and calls the broker.

loop.py             Loop: one thread, one poll, all connections
poll.py             Poll: waits for sockets, by epoll or by poll
turn.py             Turn: how long pausable requests may run in one pass
loop_timers.py      LoopTimers: deadlines of the loop itself
broker_deadline.py  BrokerDeadline: when the broker has to do something without an event
chores.py           Chores: long work on a few threads
thread_calls.py     ThreadCalls: calls from other threads into the loop
wakeup.py           WakeUp: wakes the loop from a thread or a signal
clock.py            wall clock, monotonic clock, SteadyClock
garbage.py          FullCollection: when the cyclic collector of Python runs
"""
