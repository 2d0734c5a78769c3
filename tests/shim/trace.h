// The traces of a test end with it.
#pragma once

void test_traces_drop();
