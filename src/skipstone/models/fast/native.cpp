// What Python calls; see `native.py`. Plain C, so that nothing of torch is needed to build it.

#include "backward.h"
#include "rollout.h"
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
    for (long row = 0; row < rows; row++, to += columns, from += padded<T>(columns))
        for (long c = 0; c < columns; c++) to[c] += from[c];
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
        T* const* drives = gradients + 2 * layers + 4 + 2 * shape.step_layers;
        for (long j = 0; j < shape.drive; j++)
            for (long c = 0; c < hidden; c++) {
                drives[0][c * shape.drive + j] += each->effect[j * tape.nets.width + c];
                drives[1][c * shape.drive + j] += each->driven[j * tape.nets.width + c];
            }
    }
}

// Rollouts of a batch, and the segments of all of them.
template <typename T>
struct Rolls {
    Networks<T> nets;
    std::vector<std::unique_ptr<Roll<T>>> rolls;

    Rolls(const Shape& shape, const T* const* weights, const Rollout<T>& data, long threads)
        : nets(shape, weights, false) {
        long shared = shared_context(data);
        std::vector<T> state(nets.width);
        if (shared) Roll<T>(nets, data, 0, 1).read_first(shared, state.data());
        long size = rows_per_task(data.rows);
        for (long row = 0; row < data.rows; row += size)
            rolls.emplace_back(new Roll<T>(nets, data, row, std::min(row + size, data.rows)));
        run_tasks(rolls.size(), threads,
                  [&](long task) { rolls[task]->run(state.data(), shared); });
    }

    // Observations at the start that are the same for all rows: read once. The candidates of a
    // planner differ only in their last control.
    long shared_context(const Rollout<T>& data) const {
        long inputs = nets.shape.inputs;
        if (data.rows == 1) return 0;
        for (long index = 0; index < data.context; index++)
            for (long row = 1; row < data.rows; row++) {
                long place = row * data.context + index;
                if (data.gaps[place] != data.gaps[index] ||
                    std::memcmp(data.inputs + place * inputs, data.inputs + index * inputs,
                                inputs * sizeof(T)))
                    return index;
            }
        return data.context;
    }

    // Segments, most updates of a row, and whether a step did not advance.
    void count(long* found) const {
        found[0] = found[1] = found[2] = 0;
        for (auto& roll : rolls) {
            found[0] += roll->every.size();
            found[1] = std::max<long>(found[1], roll->first_of_round.size());
            found[2] |= roll->stuck;
        }
    }

    // `knots` and `table`: (rows, updates); `reached` and `status` of each row.
    void read(T* origin, T* first, T* slope, double* knots, int64_t* table, double* reached,
              int64_t* status, long updates, long unfinished) const {
        long number = 0, hidden = nets.shape.hidden, dim = nets.shape.dim;
        for (auto& roll : rolls) {
            long round = -1, count = roll->every.size();
            for (long n = 0; n < count; n++, number++) {
                while (round + 1 < (long)roll->first_of_round.size() &&
                       roll->first_of_round[round + 1] <= n)
                    round++;
                const T* segment = roll->segments(n);
                std::copy_n(segment, hidden, first + number * hidden);
                std::copy_n(segment + nets.width, hidden, slope + number * hidden);
                std::copy_n(segment + 2 * nets.width, dim, origin + number * dim);
                long place = roll->every[n].row * updates + round;
                knots[place] = roll->every[n].time;
                table[place] = number;
            }
            for (auto& row : roll->unfinished)
                reached[row.first] = row.second, status[row.first] = unfinished;
        }
    }
};

// Predictions at offsets along lines. `weights` are those of the decoder, and what integrals of
// controls add to its first layer.
template <typename T>
void run_decode(const Shape& shape, const T* const* weights, const T* origin, const T* first,
                const T* slope, const int64_t* index, const T* offsets, const T* integrals,
                long points, T* values, long threads) {
    long hidden = shape.hidden, dim = shape.dim, drive = shape.drive;
    MLP<T> decoder(weights, hidden, hidden, dim, shape.layers, false);
    auto driven = rows_of_integrals(shape, weights[2 * shape.layers]);
    constexpr long task_points = 16 * BLOCK;
    run_tasks((points + task_points - 1) / task_points, threads, [&](long task) {
        long width = decoder.width, features = decoder.features();
        Rows<T> rows(features + padded<T>(dim));
        rows.reserve(BLOCK);
        std::vector<T> start(width), change(width);
        long end = std::min(points, (task + 1) * task_points);
        for (long begin = task * task_points; begin < end; begin += BLOCK) {
            long stop = std::min(begin + BLOCK, end);
            auto at = [&](long n) { return rows(n - begin); };
            auto out = [&](long n) { return at(n) + features; };
            for (long n = begin; n < stop; n++) {
                std::copy_n(first + index[n] * hidden, hidden, start.data());
                std::copy_n(slope + index[n] * hidden, hidden, change.data());
                first_features(shape, start.data(), change.data(), offsets[n],
                               integrals + n * drive, driven.get(), at(n));
            }
            decoder.rest(begin, stop, at, out);
            for (long n = begin; n < stop; n++)
                for (long d = 0; d < dim; d++)
                    values[n * dim + d] = origin[index[n] * dim + d] + out(n)[d];
        }
    });
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

// The most bytes of rows alive at once since this was last asked.
EXPORT long most_memory() { return memory.most.exchange(memory.now); }

EXPORT void release(void* tape) { delete static_cast<Tape<REAL>*>(tape); }

EXPORT void* rollout(const Shape* shape, const REAL* const* weights, const Rollout<REAL>* data,
                     long threads, long* counts) {
    auto rolls = std::make_unique<Rolls<REAL>>(*shape, weights, *data, threads);
    rolls->count(counts);
    return rolls.release();
}

EXPORT void read_rollout(void* rolls, REAL* origin, REAL* first, REAL* slope, double* knots,
                         int64_t* table, double* reached, int64_t* status, long updates,
                         long unfinished) {
    static_cast<Rolls<REAL>*>(rolls)->read(origin, first, slope, knots, table, reached, status,
                                           updates, unfinished);
}

EXPORT void release_rollout(void* rolls) { delete static_cast<Rolls<REAL>*>(rolls); }

EXPORT void decode(const Shape* shape, const REAL* const* weights, const REAL* origin,
                   const REAL* first, const REAL* slope, const int64_t* index, const REAL* offsets,
                   const REAL* integrals, long points, REAL* values, long threads) {
    run_decode<REAL>(*shape, weights, origin, first, slope, index, offsets, integrals, points,
                     values, threads);
}
