// Matrix products for a few rows at a time, on the vectors of GCC and Clang.
//
// Weights are packed into panels of columns. A product keeps a tile of up to TILE rows and one
// panel in registers. Every element is one sum in the order of its inputs, whatever the tile, so a
// row's result never depends on the rows beside it.

#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#if defined(VECTOR_BYTES)  // For tests: compilers make do with the vectors that there are.
#elif defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define INLINE inline __attribute__((always_inline))

template <typename T>
struct Lanes {
    static constexpr int count = VECTOR_BYTES / sizeof(T);
    static constexpr int panel = 2 * count;
    typedef T Vector __attribute__((vector_size(VECTOR_BYTES)));
    typedef T Unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};

template <typename T>
using Vector = typename Lanes<T>::Vector;

constexpr int TILE = 6;  // Rows of a tile: with two vectors each they fill sixteen registers.
constexpr int BLOCK = 60;  // Rows that go through a network together: they stay in the cache.

template <typename T>
long padded(long columns) {
    return (columns + Lanes<T>::panel - 1) / Lanes<T>::panel * Lanes<T>::panel;
}

template <typename T>
INLINE Vector<T> load(const T* from) {
    return *reinterpret_cast<const typename Lanes<T>::Unaligned*>(from);
}

template <typename T>
INLINE void store(T* to, Vector<T> value) {
    *reinterpret_cast<typename Lanes<T>::Unaligned*>(to) = value;
}

template <typename T>
INLINE Vector<T> relu(Vector<T> x) {
    return x < Vector<T>{} ? Vector<T>{} : x;  // NaN stays NaN.
}

// Bytes of rows alive now and most at once, for the benchmark.
struct Memory {
    std::atomic<long> now{0}, most{0};

    void add(long bytes) {
        long sum = now += bytes, before = most;
        while (sum > before && !most.compare_exchange_weak(before, sum)) continue;
    }
};

inline Memory memory;

template <typename T>
std::unique_ptr<T[]> zeros(long count) {
    return std::unique_ptr<T[]>(new T[count]());
}

// Rows of one width that stay where they are while more are added. Not initialised.
template <typename T>
class Rows {
public:
    explicit Rows(long width) : width_(width) {}
    Rows(const Rows&) = delete;
    ~Rows() { memory.add(-static_cast<long>(chunks_.size()) * chunk_bytes()); }

    T* operator()(long row) const { return chunks_[row / CHUNK].get() + row % CHUNK * width_; }

    void reserve(long rows) {
        while (static_cast<long>(chunks_.size()) * CHUNK < rows) {
            chunks_.emplace_back(new T[CHUNK * width_]);
            memory.add(chunk_bytes());
        }
    }

private:
    static constexpr long CHUNK = 64;
    long chunk_bytes() const { return CHUNK * width_ * sizeof(T); }
    long width_;
    std::vector<std::unique_ptr<T[]>> chunks_;
};

// The weights of a product: outputs[o] = bias[o] + sum over i of at(o, i)·inputs[i].
template <typename T>
struct Packed {
    long inputs = 0, outputs = 0;
    std::unique_ptr<T[]> data, bias;

    Packed() = default;

    // `weights[o * by_output + i * by_input]` is the weight of input i in output o.
    Packed(const T* weights, const T* offset, long outputs, long inputs, long by_output,
           long by_input)
        : inputs(inputs), outputs(outputs) {
        constexpr long panel = Lanes<T>::panel;
        long columns = padded<T>(outputs);
        data = zeros<T>(columns * inputs);
        bias = zeros<T>(columns);
        if (offset) std::copy(offset, offset + outputs, bias.get());
        for (long start = 0; start < outputs; start += panel) {
            T* to = data.get() + start * inputs;
            long width = std::min(panel, outputs - start);
            if (by_output == 1) {
                for (long i = 0; i < inputs; i++)
                    for (long o = 0; o < width; o++)
                        to[i * panel + o] = weights[start + o + i * by_input];
            } else {
                for (long o = 0; o < width; o++)
                    for (long i = 0; i < inputs; i++)
                        to[i * panel + o] = weights[(start + o) * by_output + i * by_input];
            }
        }
    }
};

// One summand of a product: the inputs stand at `offset` in each row.
template <typename T>
struct Term {
    long offset;
    const Packed<T>* weights;
};

template <typename T, int R>
INLINE void multiply(const T* const (&rows)[R], long inputs, const T* panel,
                     Vector<T> (&sums)[R][2]) {
    for (long i = 0; i < inputs; i++) {
        Vector<T> left = load(panel + i * Lanes<T>::panel);
        Vector<T> right = load(panel + i * Lanes<T>::panel + Lanes<T>::count);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            sums[r][0] += rows[r][i] * left;
            sums[r][1] += rows[r][i] * right;
        }
    }
}

template <typename T, int R, int N, typename In, typename Start, typename Store>
__attribute__((noinline)) void product_tile(long first, const In& in, const Term<T> (&terms)[N],
                                            const Start& start, const Store& store_to) {
    constexpr int lanes = Lanes<T>::count, panel = Lanes<T>::panel;
    long columns = padded<T>(terms[0].weights->outputs);
    const T* base[R];
    for (int r = 0; r < R; r++) base[r] = in(first + r);
    for (long column = 0; column < columns; column += panel) {
        Vector<T> sums[R][2];
        for (int r = 0; r < R; r++) {
            sums[r][0] = start(first + r, column);
            sums[r][1] = start(first + r, column + lanes);
        }
        for (int n = 0; n < N; n++) {
            const T* rows[R];
            for (int r = 0; r < R; r++) rows[r] = base[r] + terms[n].offset;
            const Packed<T>& weights = *terms[n].weights;
            multiply<T, R>(rows, weights.inputs, weights.data.get() + column * weights.inputs,
                           sums);
        }
        for (int r = 0; r < R; r++) {
            store_to(first + r, column, sums[r][0]);
            store_to(first + r, column + lanes, sums[r][1]);
        }
    }
}

// Rows of the next tile: 8 are better as 4 and 4 than as 6 and 2.
inline int tile_rows(long left) {
    if (left == 8 || left == 4) return 4;
    return left >= TILE ? TILE : left >= 4 ? 4 : static_cast<int>(left);
}

// The products of rows `from` to `to` with some weights. `in(row)` is where a row begins,
// `start(row, column)` what its sums begin with and `store(row, column, vector)` takes them.
template <typename T, int N, typename In, typename Start, typename Store>
void product(long from, long to, const In& in, const Term<T> (&terms)[N], const Start& start,
             const Store& store_to) {
    for (long row = from; row < to;) {
        int count = tile_rows(to - row);
        switch (count) {
            case 6: product_tile<T, 6>(row, in, terms, start, store_to); break;
            case 4: product_tile<T, 4>(row, in, terms, start, store_to); break;
            case 3: product_tile<T, 3>(row, in, terms, start, store_to); break;
            case 2: product_tile<T, 2>(row, in, terms, start, store_to); break;
            default: product_tile<T, 1>(row, in, terms, start, store_to);
        }
        row += count;
    }
}

template <typename T, int R>
__attribute__((noinline)) void outer_tile(long count, const T* const* left, long output,
                                          const T* const* right, long column, T* sums, long width) {
    constexpr int lanes = Lanes<T>::count;
    Vector<T> tile[R][2];
    for (int r = 0; r < R; r++) {
        tile[r][0] = load(sums + (output + r) * width + column);
        tile[r][1] = load(sums + (output + r) * width + column + lanes);
    }
    for (long m = 0; m < count; m++) {
        const T* row = left[m] + output;
        Vector<T> one = load(right[m] + column), other = load(right[m] + column + lanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            tile[r][0] += row[r] * one;
            tile[r][1] += row[r] * other;
        }
    }
    for (int r = 0; r < R; r++) {
        store(sums + (output + r) * width + column, tile[r][0]);
        store(sums + (output + r) * width + column + lanes, tile[r][1]);
    }
}

// The gradient of a weight and its bias: sums[o][i] += sum over rows of left[o]·right[i]. The rows
// of `sums` are `stride` apart.
template <typename T, typename Left, typename Right>
void add_outer(long from, long to, const Left& left, long outputs, const Right& right, long inputs,
               T* sums, T* bias, long stride = 0) {
    const T *lefts[BLOCK], *rights[BLOCK];
    for (long start = from; start < to; start += BLOCK) {
        long count = std::min<long>(BLOCK, to - start), width = padded<T>(inputs);
        long apart = stride ? stride : width;
        for (long m = 0; m < count; m++) lefts[m] = left(start + m), rights[m] = right(start + m);
        for (long column = 0; column < width; column += Lanes<T>::panel)
            for (long o = 0; o < outputs;) {
                int rows = tile_rows(outputs - o);
                switch (rows) {
                    case 6: outer_tile<T, 6>(count, lefts, o, rights, column, sums, apart); break;
                    case 4: outer_tile<T, 4>(count, lefts, o, rights, column, sums, apart); break;
                    case 3: outer_tile<T, 3>(count, lefts, o, rights, column, sums, apart); break;
                    case 2: outer_tile<T, 2>(count, lefts, o, rights, column, sums, apart); break;
                    default: outer_tile<T, 1>(count, lefts, o, rights, column, sums, apart);
                }
                o += rows;
            }
        if (bias)
            for (long m = 0; m < count; m++)
                for (long o = 0; o < outputs; o++) bias[o] += lefts[m][o];
    }
}

// exp(x) by its series around the nearest multiple of log 2; x is bounded to what fits.
template <typename T>
INLINE Vector<T> exponential(Vector<T> x) {
    constexpr bool single = sizeof(T) == 4;
    constexpr T limit = single ? 87 : 700, magic = single ? 12582912.0 : 6755399441055744.0;
    constexpr T high = single ? 0.693359375 : 0.693145751953125;
    constexpr T low = single ? -2.12194440054690583e-4 : 1.42860682030941723212e-6;
    typedef typename std::conditional<single, int, long>::type Whole;
    typedef Whole Wholes __attribute__((vector_size(VECTOR_BYTES)));
    x = x > limit ? limit - Vector<T>{} : x;  // NaN stays NaN.
    x = x < -limit ? -limit - Vector<T>{} : x;
    Vector<T> shifted = x * T(1.44269504088896340736) + magic;
    Vector<T> times = shifted - magic;
    Vector<T> rest = (x - times * high) - times * low;
    constexpr int degree = single ? 7 : 13;
    T factor = 1;
    T factors[degree + 1] = {1};
    for (int d = 1; d <= degree; d++) factors[d] = factor /= d;
    Vector<T> sum = factors[degree] - Vector<T>{};
#pragma GCC unroll 16
    for (int d = degree - 1; d >= 0; d--) sum = sum * rest + factors[d];
    Wholes power = reinterpret_cast<Wholes>(shifted) << (single ? 23 : 52);
    return reinterpret_cast<Vector<T>>(reinterpret_cast<Wholes>(sum) + power);
}

template <typename T>
INLINE Vector<T> sigmoid(Vector<T> x) {
    return T(1) / (T(1) + exponential<T>(-x));
}

// By exponentials, and near zero by the rational function of the Cephes library.
template <typename T>
INLINE Vector<T> hyperbolic_tangent(Vector<T> x) {
    Vector<T> size = x < Vector<T>{} ? -x : x, square = x * x;
    Vector<T> decay = exponential<T>(T(-2) * size);
    Vector<T> far = (T(1) - decay) / (T(1) + decay);
    Vector<T> over = (T(-9.64399179425052238628e-1) * square + T(-9.92877231001918586564e1)) *
                         square + T(-1.61468768441708447952e3);
    Vector<T> under = ((square + T(1.12811678491632931402e2)) * square +
                       T(2.23548839060100448583e3)) * square + T(4.84406305325125486048e3);
    Vector<T> near = x + x * square * (over / under);
    return size < T(0.625) ? near : x < Vector<T>{} ? -far : far;
}
