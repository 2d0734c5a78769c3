// Partners: "gone naps" sleeps for a millisecond again and again, "gone sleep" for 200 s and then ends, "gone crash"
// dereferences a null pointer after 1.2 ms, "gone poll" polls for ever for something that no program sends, "gone wait"
// waits for ever for another program, "gone pause" for a signal, "gone event" for an event of a device.
#include <string.h>

#include "verbs-shim/attach/attach.h"

#define MS_PS UINT64_C(1000000000)

int main(int argc, char **argv)
{
    if (argc < 2 || attach_mode() != ATTACH_TIMED) {
        return 1;
    }
    if (strcmp(argv[1], "crash") == 0) {
        (void)attach_wait(0, attach_now_ps() + 1200000000);
        *(volatile int *)0 = 1;
    }
    if (strcmp(argv[1], "sleep") == 0) {
        return attach_wait(0, 200000 * MS_PS) != 0;
    }
    for (;;) {
        if (strcmp(argv[1], "poll") == 0) {
            (void)attach_poll_call(ATTACH_WAIT_MEMORY, 1);
        } else if (strcmp(argv[1], "naps") == 0) {
            (void)attach_wait(0, attach_now_ps() + MS_PS);
        } else if (strcmp(argv[1], "pause") == 0) {
            (void)attach_wait(0, ATTACH_NEVER_PS);
        } else if (strcmp(argv[1], "event") == 0) {
            (void)attach_wait(ATTACH_WAIT_EVENTS, ATTACH_NEVER_PS);
        } else {
            (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
        }
    }
}
