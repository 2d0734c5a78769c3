#include "sim/report/page_parts.h"

#include <string.h>

// Includes a file as a text that ends with a zero. Paths: see CMakeLists.txt.
#define TEXT(name, path)                                                                                               \
    __asm__(".section .rodata\n.global " #name "\n" #name ":\n.incbin \"" path "\"\n.byte 0\n.previous\n")
TEXT(page_frame, PAGE_FOLDER "/page.html");
TEXT(page_css, PAGE_FOLDER "/page.css");
TEXT(page_script_common, PAGE_FOLDER "/common.js");
TEXT(page_script_table, PAGE_FOLDER "/table.js");
TEXT(page_script_chart, PAGE_FOLDER "/chart.js");
TEXT(page_script_causes, PAGE_FOLDER "/causes.js");
TEXT(page_script_lanes, PAGE_FOLDER "/lanes.js");
TEXT(page_script_timeline, PAGE_FOLDER "/timeline.js");
TEXT(page_script_links, PAGE_FOLDER "/links.js");
TEXT(page_script_compare, PAGE_FOLDER "/compare.js");
TEXT(page_script_result, PAGE_FOLDER "/result.js");
TEXT(page_script_page, PAGE_FOLDER "/page.js");
TEXT(page_script_watch, PAGE_FOLDER "/watch.js");
TEXT(page_d3, PAGE_D3);
TEXT(page_d3_licence, PAGE_D3_LICENCE);

extern const char page_css[], page_script_common[], page_script_table[], page_script_chart[], page_script_causes[],
    page_script_lanes[], page_script_timeline[], page_script_links[], page_script_compare[], page_script_result[],
    page_script_page[], page_script_watch[], page_d3[], page_d3_licence[];

static const struct {
    const char *name, *text;
} parts[] = {
    {"CSS", page_css},
    {"D3", page_d3},
    {"LICENCE", page_d3_licence},
    {"SCRIPT", page_script_common},
    {"SCRIPT", page_script_table},
    {"SCRIPT", page_script_chart},
    {"SCRIPT", page_script_causes},
    {"SCRIPT", page_script_lanes},
    {"SCRIPT", page_script_timeline},
    {"SCRIPT", page_script_links},
    {"SCRIPT", page_script_compare},
    {"SCRIPT", page_script_result},
    {"SCRIPT", page_script_page},
    {"SCRIPT", page_script_watch},
};

void page_part_write(const char *name, size_t length, FILE *out)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strlen(parts[i].name) == length && memcmp(parts[i].name, name, length) == 0) {
            fputs(parts[i].text, out);
        }
    }
}
