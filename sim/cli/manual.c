#include "sim/cli/manual.h"

#include <ctype.h>
#include <string.h>

static enum cli_help_form form = CLI_HELP_TEXT;

void cli_help_form_set(enum cli_help_form wanted)
{
    form = wanted;
}

enum cli_help_form cli_help_form(void)
{
    return form;
}

// Text as troff shows it: dashes that can be copied, no requests at the beginning of a line.
static void text_print(const char *text, FILE *out)
{
    bool line_begins = true;
    for (; *text != '\0'; text++) {
        if (line_begins && (*text == '.' || *text == '\'')) {
            fputs("\\&", out);
        }
        line_begins = *text == '\n';
        if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else {
            fputc(*text, out);
        }
    }
}

static void head_print(const char *page, FILE *out)
{
    fputs(".TH ", out);
    for (; *page != '\0'; page++) {
        fputc(toupper((unsigned char)*page), out);
    }
    fputs(" 1 \"\" \"tcasim " TCASIM_VERSION "\" \"tcasim\"\n", out);
}

static void option_print(const struct cli_option *option, FILE *out)
{
    bool maybe = option->kind == CLI_OPTION_MAYBE;
    fputs(".TP\n.B \\-\\-", out);
    text_print(option->name, out);
    if (option->value != NULL) {
        fprintf(out, "\\fR %s\\fI%s\\fR%s", maybe ? "[" : "", option->value, maybe ? "]" : "");
    }
    fputc('\n', out);
    text_print(option->doc, out);
    fputc('\n', out);
}

void cli_manual_print(const char *command, const struct cli_syntax *syntax, const struct cli_option *help, FILE *out)
{
    char page[64];
    snprintf(page, sizeof page, "tcasim-%s", command);
    head_print(page, out);
    // The first sentence is the page's line in lists of pages.
    size_t sentence = strcspn(syntax->doc, ".");
    fputs(".SH NAME\n", out);
    text_print(page, out);
    fputs(" \\- ", out);
    for (size_t i = 0; i < sentence; i++) {
        const char character[] = {syntax->doc[i] == '\n' ? ' ' : syntax->doc[i], '\0'};
        text_print(character, out);
    }
    fputs("\n.SH SYNOPSIS\n.nf\n", out);
    text_print(syntax->usage, out);
    fputs("\n.fi\n.SH DESCRIPTION\n", out);
    text_print(syntax->doc, out);
    fputs("\n.SH OPTIONS\n", out);
    for (size_t i = 0; i < syntax->option_count; i++) {
        option_print(&syntax->options[i], out);
    }
    option_print(help, out);
    fputs(".SH SEE ALSO\n.BR tcasim (1)\n", out);
}

void cli_words_print(const struct cli_syntax *syntax, const struct cli_option *help, FILE *out)
{
    for (size_t i = 0; i < syntax->option_count; i++) {
        fprintf(out, "--%s\n", syntax->options[i].name);
    }
    fprintf(out, "--%s\n", help->name);
}

void cli_manual_of_program_print(const struct cli_command *commands, size_t count, FILE *out)
{
    head_print("tcasim", out);
    fputs(
        ".SH NAME\ntcasim \\- simulates GPU\\-cluster nodes joined by PEACH2 boards over PCI Express\n.SH SYNOPSIS\n"
        ".B tcasim\n.I command\n.RB [ \\-\\-help ]\n\\&...\n.SH DESCRIPTION\nA full\\-system simulator of the "
        "TCA/PEACH2 fabric. Scenarios in YAML describe nodes, cables and measurements; programs on\nlibibverbs, MPI or "
        "the TCA library run unmodified in simulated time.\n.SH COMMANDS\n",
        out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, ".TP\n.BR tcasim\\-%s (1)\n", commands[i].name);
        text_print(commands[i].summary, out);
        fputc('\n', out);
    }
    fputs(
        ".SH EXIT STATUS\n0 fine, 1 an expectation does not hold, 2 bad input, 3 the simulation got stuck, 130 stopped "
        "by Ctrl\\-C.\n.SH ENVIRONMENT\n.TP\n.B TCASIM_HOME\nwhere configs, scenarios and published values are; "
        "otherwise they are found beside the program\n",
        out);
}
