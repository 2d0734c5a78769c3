// The stacked bars: one bar for each series, with the parts in their order from left to right.
#include <inttypes.h>

#include "sim/report/breakdown_internal.h"
#include "sim/report/plot_axis.h"

enum { WIDTH = 1180, BAR_HEIGHT = 62, AROUND_HEIGHT = 190 };
#define LABEL_SHARE 24 // a stretch shorter than this fraction of the longest bar has no room for its number

// Neighbours differ in hue and in lightness; text on them is black or white.
struct colour {
    const char *fill, *text;
};

static struct colour colour_of(enum breakdown_part part)
{
    static const struct colour colours[PARTS] = {
        [PART_LIBRARY] = {"#0072B2", "#ffffff"},    [PART_STORES] = {"#56B4E9", "#000000"},
        [PART_DESCRIPTOR] = {"#F0E442", "#000000"}, [PART_PCIE] = {"#009E73", "#ffffff"},
        [PART_BOARD] = {"#E69F00", "#000000"},      [PART_CABLE] = {"#D55E00", "#ffffff"},
        [PART_MEMORY] = {"#CC79A7", "#000000"},     [PART_GPU] = {"#7FBF3F", "#000000"},
        [PART_POLLING] = {"#999999", "#000000"},    [PART_REMOTE_LIBRARY] = {"#003F66", "#ffffff"},
        [PART_OTHER] = {"#444444", "#ffffff"},
    };
    // of the devices of devices.def, in their order
    static const struct colour devices[] = {
        {"#B15928", "#ffffff"}, {"#6A3D9A", "#ffffff"}, {"#8DD3C7", "#000000"}, {"#7F0000", "#ffffff"}};
    unsigned device = (unsigned)(part - PART_BOARD - 1);
    return colours[part].fill != NULL ? colours[part] : devices[device % (sizeof devices / sizeof devices[0])];
}

static uint64_t longest_ps(const breakdown_t *breakdown)
{
    uint64_t longest = 1;
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        const struct breakdown_series *series = &breakdown->series[i];
        uint64_t each_ps = breakdown_each_ps(series, series->total_ps);
        longest = each_ps > longest ? each_ps : longest;
    }
    return longest;
}

static void ns_write(FILE *out, uint64_t ps)
{
    fprintf(out, "%" PRIu64 ".%03u", ps / PS_PER_NS, (unsigned)(ps % PS_PER_NS));
}

// Begin, end, row and number of one part's stretches. Ends are rounded, not lengths, so bars have no gaps.
static void stretches_write(const breakdown_t *breakdown, enum breakdown_part part, FILE *out)
{
    uint64_t least_ps = longest_ps(breakdown) / LABEL_SHARE;
    fprintf(out, "\n$part_%d << END\n", (int)part);
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        const struct breakdown_series *series = &breakdown->series[i];
        uint64_t begin_ps = 0, took_ps = series->parts_ps[part];
        for (enum breakdown_part before = 0; before < part; before++) {
            begin_ps += series->parts_ps[before];
        }
        if (took_ps == 0) {
            continue;
        }
        uint64_t each_ps = breakdown_each_ps(series, took_ps);
        ns_write(out, breakdown_each_ps(series, begin_ps));
        fputc(' ', out);
        ns_write(out, breakdown_each_ps(series, begin_ps + took_ps));
        fprintf(out, " %" PRIu32 " ", i + 1);
        if (each_ps >= least_ps) {
            fprintf(out, "\"%" PRIu64 "\"\n", (each_ps + PS_PER_NS / 2) / PS_PER_NS);
        } else {
            fputs("\"\"\n", out);
        }
    }
    fputs("END\n", out);
}

static void totals_write(const breakdown_t *breakdown, FILE *out)
{
    fputs("\n$totals << END\n", out);
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        const struct breakdown_series *series = &breakdown->series[i];
        uint64_t each_ps = breakdown_each_ps(series, series->total_ps);
        ns_write(out, each_ps);
        fprintf(out, " %" PRIu32 " \"%" PRIu64 " ns\"\n", i + 1, (each_ps + PS_PER_NS / 2) / PS_PER_NS);
    }
    fputs("END\n", out);
}

static void axes_write(const breakdown_t *breakdown, const char *title, FILE *out)
{
    fprintf(out,
            "# Draws breakdown.svg; run it in this directory: gnuplot breakdown.gp\n"
            "if (!exists('image')) image = 'breakdown.svg'\n\n"
            "set terminal svg size %d,%" PRIu32
            " noenhanced font 'Helvetica,15' linewidth 1.2 background rgb '#ffffff'\n"
            "set output image\n"
            "set border 1 linecolor '#404040'\n"
            "set tics nomirror out scale 0.6\n"
            "set grid xtics linetype 1 linewidth 0.6 linecolor '#dddddd'\n"
            "set key outside right top Left reverse spacing 1.25 noautotitle\n"
            "set style fill solid border rgb '#ffffff'\n"
            "set xlabel 'time of one operation (ns)'\n"
            "set xrange [0:%" PRIu64 "]\n"
            "set yrange [%" PRIu32 ".6:0.4]\n"
            "set ytics scale 0 (",
            WIDTH, AROUND_HEIGHT + BAR_HEIGHT * (breakdown->series_count < 4 ? 4 : breakdown->series_count),
            longest_ps(breakdown) * 11 / 10 / PS_PER_NS + 1, breakdown->series_count);
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        char label[SCN_NAME_MAX + 32];
        snprintf(label, sizeof label, "%s, %" PRIu64 " B", breakdown->series[i].name, breakdown->series[i].bytes);
        fputs(i == 0 ? "" : ", ", out);
        plot_string_write(out, label);
        fprintf(out, " %" PRIu32, i + 1);
    }
    fputs(")\nset title ", out);
    plot_string_write(out, title);
    fputc('\n', out);
}

void breakdown_plot_write(const breakdown_t *breakdown, const char *title, FILE *out)
{
    axes_write(breakdown, title, out);
    for (enum breakdown_part part = 0; part < PARTS; part++) {
        if (breakdown_part_used(breakdown, part)) {
            stretches_write(breakdown, part, out);
        }
    }
    totals_write(breakdown, out);
    fputs("\nplot ", out);
    for (enum breakdown_part part = 0; part < PARTS; part++) {
        if (!breakdown_part_used(breakdown, part)) {
            continue;
        }
        fprintf(out,
                "$part_%d using (($1+$2)/2):3:1:2:($3-0.32):($3+0.32) with boxxyerror fillcolor rgb '%s' title '%s', "
                "\\\n     '' using (($1+$2)/2):3:4 with labels font ',12' textcolor rgb '%s', \\\n     ",
                (int)part, colour_of(part).fill, breakdown_part_names[part], colour_of(part).text);
    }
    fputs("$totals using 1:2:3 with labels left offset 0.6,0 font ',14'\nset output\n", out);
}
