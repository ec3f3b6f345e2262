import org.apache.kafka.common.utils.Time;

import java.util.function.Supplier;

/** A clock that moves only when told to; sleeping moves it. */
final class ManualTime implements Time {
    private long nowMs;

    void set(long ms) {
        nowMs = ms;
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return nowMs * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        nowMs += ms;
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nothing here may wait for another thread");
    }
}
