// Loops that look at more than they name.
#include <stdlib.h>

#include "stage.h"

TEST(AttachedLoop, SeesAMessageThatItsLooksDoNotNameAndLooksOnceMoreWithoutWaiting)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, 1, "stray", NULL);
    stage_add(&stage, 0, "stray", NULL);
    stage_run(&stage);
    EXPECT_STREQ(stage.result.text, "");
    EXPECT_EQ(stage.result.statuses[0], 0);
    char *text = stage_output(&stage, 1);
    EXPECT_BETWEEN(atoi(text), 1500, 2200); // twice the way of a PIO write, and some turns
    free(text);
    stage_fini(&stage);
}
