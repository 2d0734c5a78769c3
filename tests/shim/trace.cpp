// Failures, and the traces that stand beneath them.
//
// Traces are kept here and not on the stacks of those that entered them, because a cancelled thread never leaves its own:
// its frames are dropped (sim/kernel/thread.c). Those of a thread are dropped with its simulation.
#include "tests/shim/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/kernel/internal.h"
#include "tests/shim/test.h"

namespace
{

struct Trace {
    uint64_t number;
    const sim_thread *thread; // that entered it; nullptr: the code outside threads
    const char *file;
    int line;
    std::string text;
};

std::vector<Trace> traces; // in the order in which they were entered
uint64_t last_number;

std::string formatted(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(nullptr, 0, format, again);
    va_end(again);
    std::string text(static_cast<size_t>(std::max(length, 0)) + 1, '\0');
    vsnprintf(text.data(), text.size(), format, args);
    text.pop_back();
    return text;
}

const sim_thread *current_thread()
{
    const sim_t *sim = sim_bridge_living();
    return sim != nullptr ? sim->current : nullptr;
}

void drop_cancelled()
{
    if (sim_bridge_living() == nullptr) {
        traces.erase(
            std::remove_if(traces.begin(), traces.end(), [](const Trace &trace) { return trace.thread != nullptr; }),
            traces.end());
    }
}

// The innermost first. In a thread, the lines of those that run the simulation follow.
std::string lines_of(const sim_thread *thread)
{
    std::string lines;
    for (auto trace = traces.rbegin(); trace != traces.rend(); ++trace) {
        if (trace->thread == thread) {
            lines += "\n  in " + trace->text + " (" + trace->file + ":" + std::to_string(trace->line) + ")";
        }
    }
    return lines;
}

std::string here()
{
    const sim_thread *thread = current_thread();
    std::string lines = lines_of(thread);
    if (thread != nullptr) {
        const sim_t *sim = sim_bridge_living();
        lines += std::string("\n  in thread ") + sim_thread_name(sim) + " at " + std::to_string(sim->now_ps) + " ps";
        lines += lines_of(nullptr);
    }
    return lines;
}

} // namespace

void test_traces_drop()
{
    traces.clear();
}

extern "C" uint64_t test_trace_enter(const char *file, int line, const char *format, ...)
{
    drop_cancelled();
    va_list args;
    va_start(args, format);
    traces.push_back({++last_number, current_thread(), file, line, formatted(format, args)});
    va_end(args);
    return last_number;
}

extern "C" void test_trace_leave(const uint64_t *trace)
{
    const auto left = std::find_if(traces.rbegin(), traces.rend(),
                                   [trace](const Trace &entered) { return entered.number == *trace; });
    if (left != traces.rend()) {
        traces.erase(std::next(left).base());
    }
    drop_cancelled();
}

extern "C" void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const std::string text = formatted(format, args);
    va_end(args);
    ADD_FAILURE_AT(file, line) << text << here();
}
