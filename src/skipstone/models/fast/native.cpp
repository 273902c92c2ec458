// What Python calls; see `native.py`. Plain C, so that nothing of torch is needed to build it.

#include "backward.h"
#include "threads.h"

constexpr long TASK_ROWS = 32, MOST_TASKS = 16;

// How a batch is divided: by its size alone, so that sums of gradients are the same on any number
// of threads.
inline long rows_per_task(long rows) {
    return std::max(TASK_ROWS, (rows + MOST_TASKS - 1) / MOST_TASKS);
}

template <typename T>
struct Tape {
    Networks<T> nets;
    std::vector<std::unique_ptr<Walk<T>>> walks;

    Tape(const Shape& shape, const T* const* weights, const Batch<T>& batch)
        : nets(shape, weights, batch.keep) {
        long size = rows_per_task(batch.rows);
        for (long row = 0; row < batch.rows; row += size)
            walks.emplace_back(
                new Walk<T>(nets, batch, row, std::min(row + size, batch.rows)));
    }
};

template <typename T>
void* run_walk(const Shape& shape, const T* const* weights, const Batch<T>& batch, long threads) {
    auto tape = std::make_unique<Tape<T>>(shape, weights, batch);
    run_tasks(tape->walks.size(), threads, [&](long task) { tape->walks[task]->run(); });
    return batch.keep ? tape.release() : nullptr;
}

// Add rows that are padded to ones that are not.
template <typename T>
void collect(T* to, const T* from, long rows, long columns) {
    if (!to) return;
    for (long row = 0; row < rows; row++)
        for (long c = 0; c < columns; c++) to[row * columns + c] += from[row * padded<T>(columns) + c];
}

template <typename T>
void collect(T* const* to, const MLPGradients<T>& from) {
    for (size_t layer = 0; layer < from.net.forward.size(); layer++) {
        const Packed<T>& weights = from.net.forward[layer];
        collect(to[2 * layer], from.weights[layer].get(), weights.outputs, weights.inputs);
        collect(to[2 * layer + 1], from.biases[layer].get(), 1, weights.outputs);
    }
}

// `gradients` are zero, in the order of the weights; null where a weight has none.
template <typename T>
void run_backward(Tape<T>& tape, const Upstream<T>& by, T* const* gradients, long threads) {
    std::vector<std::unique_ptr<Backward<T>>> found(tape.walks.size());
    run_tasks(found.size(), threads, [&](long task) {
        found[task].reset(new Backward<T>(*tape.walks[task]));
        found[task]->run(by);
    });
    const Shape& shape = tape.nets.shape;
    long hidden = shape.hidden, layers = 2 * shape.layers;
    for (auto& each : found) {
        collect(gradients, each->encoder);
        collect(gradients[layers], each->inputs.get(), 3 * hidden, hidden);
        collect(gradients[layers + 1], each->states.get(), 3 * hidden, hidden);
        for (long gate = 0; gate < 3; gate++) {
            long at = gate * tape.nets.width;
            collect(gradients[layers + 2] + gate * hidden, each->inputs_bias.get() + at, 1, hidden);
            collect(gradients[layers + 3] + gate * hidden, each->states_bias.get() + at, 1, hidden);
        }
        collect(gradients + layers + 4, each->decoder);
        collect(gradients + 2 * layers + 4, each->steps);
    }
}

// One library for each precision: -DREAL=float or -DREAL=double.
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* walk(const Shape* shape, const REAL* const* weights, const Batch<REAL>* batch,
                  long threads) {
    return run_walk<REAL>(*shape, weights, *batch, threads);
}

EXPORT void backward(void* tape, const Upstream<REAL>* by, REAL* const* gradients, long threads) {
    run_backward<REAL>(*static_cast<Tape<REAL>*>(tape), *by, gradients, threads);
}

EXPORT void release(void* tape) { delete static_cast<Tape<REAL>*>(tape); }
