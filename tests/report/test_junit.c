// JUnit XML as text; tests/programs/junit.sh reads it with an XML parser.
#include <stdio.h>
#include <stdlib.h>

#include "sim/report/junit.h"
#include "tests/shim/test.h"

static char *written(const junit_t *junit)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    junit_head_write(out);
    junit_suites_write(junit, out);
    junit_foot_write(out);
    fclose(out);
    return text;
}

TEST(Junit, HasASuiteForEachScenarioAndACaseForEachExpectation)
{
    junit_t *junit = junit_create();
    junit_suite_begin(junit, "pair", "ci/pair.yaml");
    junit_case_add(junit, "fast", 7, JUNIT_PASSED, NULL, NULL);
    junit_case_add(junit, "same", 0, JUNIT_FAILED, "it is not", "-a\n+b\n");
    junit_case_add(junit, "simulation", 0, JUNIT_ERROR, "stuck", NULL);
    junit_case_add(junit, "later", 9, JUNIT_SKIPPED, "stuck", NULL);
    junit_suite_begin(junit, "empty", "e.yaml");
    char *text = written(junit);
    EXPECT_STREQ(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tcasim\">\n"
                       "  <testsuite name=\"pair\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"0\">\n"
                       "    <testcase classname=\"pair\" name=\"fast\" file=\"ci/pair.yaml\" line=\"7\" time=\"0\"/>\n"
                       "    <testcase classname=\"pair\" name=\"same\" file=\"ci/pair.yaml\" time=\"0\">\n"
                       "      <failure message=\"it is not\" type=\"expectation\">it is not\n-a\n+b\n</failure>\n"
                       "    </testcase>\n"
                       "    <testcase classname=\"pair\" name=\"simulation\" file=\"ci/pair.yaml\" time=\"0\">\n"
                       "      <error message=\"stuck\" type=\"simulation\">stuck</error>\n    </testcase>\n"
                       "    <testcase classname=\"pair\" name=\"later\" file=\"ci/pair.yaml\" line=\"9\" time=\"0\">\n"
                       "      <skipped message=\"stuck\"/>\n    </testcase>\n  </testsuite>\n"
                       "  <testsuite name=\"empty\" tests=\"0\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"0\">\n"
                       "  </testsuite>\n</testsuites>\n");
    free(text);
    junit_destroy(junit);
}

TEST(Junit, EscapesWhatXmlWouldRead)
{
    junit_t *junit = junit_create();
    junit_suite_begin(junit, "a\"<&>'b", "f");
    junit_case_add(junit, "n", 0, JUNIT_FAILED, "two\nlines\t]]>", "]]> & \x01\xff\n");
    char *text = written(junit);
    EXPECT_CONTAINS(text, "name=\"a&quot;&lt;&amp;&gt;'b\"");
    EXPECT_CONTAINS(text, "message=\"two&#10;lines&#9;]]&gt;\"");
    EXPECT_CONTAINS(text, ">two\nlines\t]]&gt;\n]]&gt; &amp; \\x01\\xff\n</failure>");
    free(text);
    junit_destroy(junit);
}
