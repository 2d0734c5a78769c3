// The player of the tables, for world_timely.
#pragma once

struct timely_theme;

void timely_play(const struct timely_theme *theme);
