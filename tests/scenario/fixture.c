#include "fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fixture_load_file(struct fixture *fixture, const char *path, const char *configs_dir, const char *set)
{
    struct scn_load_options options = {.configs_dir = configs_dir, .sets = &set, .set_count = set != NULL ? 1 : 0};
    *fixture = (struct fixture){0};
    fixture->status = scn_load(path, &options, &fixture->scenario, &fixture->messages);
}

void fixture_write(const char *path, const char *text, size_t length)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(text, 1, length, out) != length) {
        FAIL("cannot write %s", path);
    }
    if (out != NULL) {
        fclose(out);
    }
}

void fixture_folder_create(char path[64])
{
    snprintf(path, 64, "/tmp/tcasim-scenario-XXXXXX");
    if (mkdtemp(path) == NULL) {
        FAIL("no folder %s", path);
    }
}

void fixture_folder_remove(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char inner[1024];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && unlink(inner) != 0) {
            fixture_folder_remove(inner);
        }
    }
    closedir(dir);
    rmdir(path);
}

void fixture_load_text(struct fixture *fixture, const char *text, const char *set)
{
    char folder[64], path[128];
    fixture_folder_create(folder);
    snprintf(path, sizeof path, "%s/case.yaml", folder);
    fixture_write(path, text, strlen(text));
    fixture_load_file(fixture, path, FIXTURE_CONFIGS, set);
    fixture_folder_remove(folder);
}

static const char *part(const char *given, const char *usual)
{
    return given != NULL ? given : usual;
}

void fixture_load_parts(struct fixture *fixture, const struct fixture_parts *parts)
{
    char text[4096];
    snprintf(text, sizeof text, "%s\nnodes: %s\ncables: %s\nruns: [{%s}]\n%s\n", part(parts->top, "title: t"),
             part(parts->nodes, "[{name: a, preset: ha-pacs-tca-2013}, {name: b, preset: ha-pacs-tca-2013}]"),
             part(parts->cables, "[{from: a.E, to: b.W, preset: pearl-gen2-x8}]"),
             part(parts->run, "series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 8 B"),
             part(parts->rest, ""));
    fixture_load_text(fixture, text, NULL);
}

void fixture_fini(struct fixture *fixture)
{
    scn_free(fixture->scenario);
    scn_messages_free(&fixture->messages);
}

const char *fixture_message(const struct fixture *fixture)
{
    if (fixture->messages.count == 0) {
        return "";
    }
    const char *text = strstr(fixture->messages.lines[0], ": ");
    return text != NULL ? text + 2 : fixture->messages.lines[0];
}

void fixture_expect_refused(const struct fixture_parts *parts, const char *message)
{
    struct fixture fixture;
    fixture_load_parts(&fixture, parts);
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    EXPECT_EQ(fixture.messages.count, 1);
    EXPECT_STREQ(fixture_message(&fixture), message);
    fixture_fini(&fixture);
}

void fixture_expect_accepted(const struct fixture_parts *parts)
{
    struct fixture fixture;
    fixture_load_parts(&fixture, parts);
    EXPECT_STREQ(fixture_message(&fixture), "");
    EXPECT_EQ(fixture.status, SIM_OK);
    fixture_fini(&fixture);
}

char *fixture_lines(const struct fixture *fixture)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < fixture->messages.count; i++) {
        fprintf(out, "%s\n", fixture->messages.lines[i]);
    }
    fclose(out);
    return text;
}

char *fixture_resolved(const struct scn_scenario *scenario)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    EXPECT_EQ(scn_write_resolved(scenario, out), SIM_OK);
    fclose(out);
    return text;
}

char *fixture_read(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        return NULL;
    }
    char *text = calloc(1, FIXTURE_TEXT_MAX);
    if (text != NULL) {
        size_t length = fread(text, 1, FIXTURE_TEXT_MAX - 1, in);
        text[length] = '\0';
    }
    fclose(in);
    return text;
}
