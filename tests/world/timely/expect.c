// What the tables say about each case.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "timely.h"

const struct timely_theme *const timely_themes[TIMELY_THEMES] = {
    &timely_reads,   &timely_writes,      &timely_calls,   &timely_library, &timely_clocks,       &timely_timers,
    &timely_signals, &timely_descriptors, &timely_life,    &timely_ids,     &timely_hosts,        &timely_machine,
    &timely_paths,   &timely_streams,     &timely_futexes, &timely_loops,   &timely_asynchronous,
};

// --- waits that a signal ends (signal(7)) ---------------------------------------------------------------------------

static bool is_of(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

static bool is_ended(const struct timely_row *row, enum timely_episode episode)
{
    static const char *const always[] = {
        "poll",          "__poll_chk",  "ppoll",           "__ppoll_chk",  "select",      "pselect", "pselect6",
        "epoll_wait",    "epoll_pwait", "epoll_pwait2",    "semop",        "semtimedop",  "msgsnd",  "msgrcv",
        "rt_sigsuspend", "sigsuspend",  "rt_sigtimedwait", "sigtimedwait", "sigwaitinfo", NULL};
    static const char *const never[] = {"sigwait", NULL};
    static const char *const until[] = {"mq_timedsend", "mq_timedreceive", NULL}; // a time-out changes nothing
    if (episode < TIMELY_RESTARTED || is_of(never, row->name)) {
        return false;
    }
    return episode == TIMELY_ENDED || is_of(always, row->name) || (episode == TIMELY_TIMED && !is_of(until, row->name));
}

// --- cases ----------------------------------------------------------------------------------------------------------

static bool is_woken(const struct timely_row *row, struct timely_case one)
{
    return !row->stage->never_woken && !(row->stage->of_process && one.waker == TIMELY_THREAD);
}

static bool is_signalled(const struct timely_row *row, struct timely_case one)
{
    return is_woken(row, one) && !row->stage->never_early && !row->stage->never_ended;
}

static bool is_played(const struct timely_row *row, struct timely_case one)
{
    const struct timely_stage *stage = row->stage;
    bool by_name = one.way == TIMELY_BY_NAME, by_thread = one.waker == TIMELY_THREAD;
    if (by_name == (row->kind == TIMELY_CALL)) {
        return false;
    }
    if (stage == NULL) {
        return by_thread && one.episode <= TIMELY_AGAIN;
    }
    switch (one.episode) {
    case TIMELY_WOKEN:
    case TIMELY_AGAIN:
        return is_woken(row, one);
    case TIMELY_EARLY:
        return is_woken(row, one) && !stage->never_early;
    case TIMELY_LIMIT:
        return row->has_limit && by_thread;
    case TIMELY_RESTARTED:
    case TIMELY_ENDED:
        return is_signalled(row, one);
    case TIMELY_TIMED:
        return is_signalled(row, one) && row->has_limit;
    case TIMELY_EPISODES:
        break;
    }
    return false;
}

bool timely_expect(const struct timely_row *row, struct timely_case one, struct timely_expected *out)
{
    static const long at_us[TIMELY_EPISODES] = {TIMELY_WOKEN_US, TIMELY_AGAIN_US, TIMELY_EARLY_US, TIMELY_LIMIT_US,
                                                TIMELY_WOKEN_US, TIMELY_WOKEN_US, TIMELY_WOKEN_US};
    if (!is_played(row, one)) {
        return false;
    }
    *out = (struct timely_expected){.at_us = row->stage != NULL ? at_us[one.episode] : row->at_us,
                                    .late_ns = row->late_ns,
                                    .result = one.episode == TIMELY_LIMIT ? row->limit_result : row->result};
    if (is_ended(row, one.episode)) {
        out->at_us = TIMELY_SIGNAL_US;
        out->result = -EINTR;
    } else if (row->stage != NULL && one.episode != TIMELY_EARLY && one.episode != TIMELY_LIMIT) {
        out->at_us += row->stage->after_us;
    }
    return true;
}

void timely_line_begin(char line[TIMELY_LINE_BYTES], const struct timely_theme *theme, unsigned row,
                       struct timely_case one)
{
    static const char *const kinds[] = {"function", "call", "library"}, *const ways[] = TIMELY_WAY_NAMES,
                             *const wakers[] = TIMELY_WAKER_NAMES, *const episodes[] = TIMELY_EPISODE_NAMES;
    const struct timely_row *at = &theme->rows[row];
    (void)snprintf(line, TIMELY_LINE_BYTES, "%u: %s %s%s%s, by %s, %s by a %s:", row, kinds[at->kind], at->name,
                   at->stage != NULL ? " of " : "", at->stage != NULL ? at->stage->name : "", ways[one.way],
                   episodes[one.episode], wakers[one.waker]);
}

long timely_result(long result)
{
    return result == -1 ? -errno : result;
}
