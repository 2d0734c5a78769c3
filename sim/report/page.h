// The report: directories of results as one self-contained page of HTML.
//
// The page has the rows that are compared with publications, the figures as charts that can be zoomed, the timelines, the
// counters and the manifests. It loads nothing; without scripts it shows the pictures. Its parts are in page/, and the
// charts are D3's, both built into the program.
//
// Leaves out: everything that the directories do not have. They are not trusted: what is no table is an error.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/kernel/status.h"

struct page_request {
    const char *const
        *directories; // of results: data.csv, compare.csv, breakdown.csv, sensitivity.csv; at least one each
    size_t count;
    const char
        *name; // of a page in the only directory, instead of the directory's: results have the same bytes anywhere
    struct {
        const char *script; // a file beside the page that knows the newest version; NULL: the page stays as it is
        uint64_t version;
    } watch;
    const char *configs_path; // where presets are, for resolved.yaml; NULL: no capacities and no drawings
    // The time of bytes on a PCI Express link, from which its capacity follows.
    uint64_t (*wire_ps)(uint32_t generation, uint32_t lanes, uint64_t bytes);
    const char *accuracy_path; // the document with paragraphs on rows ("**H15, +50 %.** ..."); NULL: none
};

// Whether the directory has results that a page can show.
bool page_has_results(const char *directory);

// Writes the page to path, at once: an interrupted run leaves no part of it.
enum sim_status page_write(const struct page_request *request, const char *path, char *error, size_t error_size);

// Writes the script of request->watch: pages of other versions reload.
enum sim_status page_watch_write(const struct page_request *request, const char *path, char *error, size_t error_size);
