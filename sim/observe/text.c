#include <stdarg.h>

#include "sim/observe/internal.h"

void observe_text_add(struct observe_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsnprintf(text->bytes + text->used, sizeof text->bytes - text->used, format, args);
    va_end(args);
    size_t room = sizeof text->bytes - text->used - 1;
    text->used += written < 0 ? 0 : (size_t)written < room ? (size_t)written : room;
}

void observe_text_title(struct observe_text *text, const observe_process_t *process)
{
    char title[128];
    observe_title(process, title, sizeof title);
    observe_text_add(text, "%s", title);
}

void observe_text_bytes(struct observe_text *text, uint64_t bytes)
{
    char quantity[32];
    observe_bytes_print(bytes, quantity, sizeof quantity);
    observe_text_add(text, "%s", quantity);
}

void observe_text_time(struct observe_text *text, uint64_t ps)
{
    char time[48];
    observe_time_print(ps, time, sizeof time);
    observe_text_add(text, "%s", time);
}
