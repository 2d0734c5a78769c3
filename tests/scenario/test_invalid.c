// Every file in scenarios/invalid/ is refused with exactly the lines of its .expected file.
#include "fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER TCASIM_SOURCE_DIR "/scenarios/invalid/"

// Paths in the expectations are relative to the folder.
static char *relative_lines(const struct fixture *fixture)
{
    char *text = fixture_lines(fixture);
    for (char *found = strstr(text, FOLDER); found != NULL; found = strstr(found, FOLDER)) {
        memmove(found, found + strlen(FOLDER), strlen(found + strlen(FOLDER)) + 1);
    }
    return text;
}

static void check_file(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, FOLDER "%s", name);
    struct fixture fixture;
    fixture_load_file(&fixture, path, FIXTURE_CONFIGS, NULL);
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    char *actual = relative_lines(&fixture);
    snprintf(path, sizeof path, FOLDER "%.*s.expected", (int)(strlen(name) - strlen(".yaml")), name);
    char *expected = fixture_read(path);
    EXPECT_NE(actual[0], '\0');
    EXPECT_STREQ(actual, expected != NULL ? expected : "(no .expected file)");
    free(actual);
    free(expected);
    fixture_fini(&fixture);
}

TEST(Invalid, EveryFileIsRefusedWithItsExactMessages)
{
    DIR *dir = opendir(FOLDER);
    ASSERT_NOT_NULL(dir);
    unsigned count = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *suffix = strstr(entry->d_name, ".yaml");
        if (suffix != NULL && strcmp(suffix, ".yaml") == 0) {
            check_file(entry->d_name);
            count++;
        }
    }
    closedir(dir);
    EXPECT_GE(count, 20);
}
