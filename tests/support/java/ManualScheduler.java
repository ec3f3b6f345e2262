import org.apache.kafka.server.util.Scheduler;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Background work of one log, run on the caller's thread when it is due and somebody says so. */
final class ManualScheduler implements Scheduler {
    private final ManualTime time;
    private final List<Task> tasks = new ArrayList<>();
    private long scheduled = 0;

    ManualScheduler(ManualTime time) {
        this.time = time;
    }

    @Override
    public void startup() { }

    @Override
    public void shutdown() {
        tasks.clear();
    }

    @Override
    public void resizeThreadPool(int newSize) { }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable work, long delayMs, long periodMs) {
        Task task = new Task(name, work, time.milliseconds() + Math.max(delayMs, 0), periodMs, scheduled++);
        tasks.add(task);
        return task;
    }

    /** Run what is due, in the order of time and then of scheduling; the names of what ran. */
    List<String> runDue() {
        List<String> ran = new ArrayList<>();
        Task task;
        while ((task = tasks.stream().filter(Task::isDue).min(Task.ORDER).orElse(null)) != null) {
            if (task.periodMs > 0)
                task.dueMs = time.milliseconds() + task.periodMs;
            else
                tasks.remove(task);
            task.work.run();
            ran.add(task.name);
        }
        return ran;
    }

    List<String> pending() {
        List<String> names = new ArrayList<>();
        tasks.stream().sorted(Task.ORDER).forEach(task -> names.add(task.name));
        return names;
    }

    private final class Task implements ScheduledFuture<Object> {
        static final Comparator<Task> ORDER =
            Comparator.<Task>comparingLong(task -> task.dueMs).thenComparingLong(task -> task.sequence);

        final String name;
        final Runnable work;
        final long periodMs;
        final long sequence;
        long dueMs;

        Task(String name, Runnable work, long dueMs, long periodMs, long sequence) {
            this.name = name;
            this.work = work;
            this.dueMs = dueMs;
            this.periodMs = periodMs;
            this.sequence = sequence;
        }

        boolean isDue() {
            return dueMs <= time.milliseconds();
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            return tasks.remove(this);
        }

        @Override
        public boolean isCancelled() {
            return !tasks.contains(this);
        }

        @Override
        public boolean isDone() {
            return !tasks.contains(this);
        }

        @Override
        public Object get() {
            return null;
        }

        @Override
        public Object get(long timeout, TimeUnit unit) {
            return null;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(dueMs - time.milliseconds(), TimeUnit.MILLISECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(getDelay(TimeUnit.MILLISECONDS), other.getDelay(TimeUnit.MILLISECONDS));
        }
    }
}
