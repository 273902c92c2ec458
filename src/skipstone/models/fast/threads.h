// Independent tasks on several threads.

#pragma once

#include <dlfcn.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

struct Tasks {
    std::atomic<long> next{0};
    long count;
    const std::function<void(long)>& run;

    void work() {
        for (long task = next++; task < count; task = next++) run(task);
    }
};

inline void run_tasks(long count, long threads, const std::function<void(long)>& run) {
    Tasks tasks{{0}, count, run};
    threads = std::min(threads, count);
    if (threads <= 1) return tasks.work();
    // The threads that torch has already: others would fight with them for the cores.
    typedef void (*Parallel)(void (*)(void*), void*, unsigned, unsigned);
    static const auto parallel = reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
    if (parallel)
        return parallel([](void* all) { static_cast<Tasks*>(all)->work(); }, &tasks, threads, 0);
    std::vector<std::thread> others;
    for (long n = 1; n < threads; n++) others.emplace_back([&] { tasks.work(); });
    tasks.work();
    for (std::thread& other : others) other.join();
}
