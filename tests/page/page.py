#!/usr/bin/python3
"""page.py PROGRAM FOLDER CASE: the page of `tcasim report` in Chromium. The case `results` makes the results and the page
in the folder, which the others open; `all` is all of them. Status 77: there is no browser, or no Selenium."""
import shutil
import sys
import traceback

sys.dont_write_bytecode = True  # the source folder stays as it is

import comparisons
import figures
import links
import timelines
from browser import Page, results


CASES = {case.__name__: case for case in (
    figures.no_script_fails, figures.hovering_shows_the_number,
    figures.published_values_have_the_colour_of_their_curve, figures.the_filter_filters,
    figures.heads_sort_by_their_column, figures.a_row_opens_its_reason, figures.a_series_can_be_left_out,
    figures.dragging_zooms_and_a_double_click_shows_the_whole, figures.another_result_stands_beside,
    figures.a_sweep_has_curves_and_a_surface, figures.a_sweep_of_two_keys_has_a_line_for_each_value_of_the_second_one,
    figures.a_sweep_beside_itself_has_the_same_curves, figures.a_sweep_of_words_has_bars, figures.a_table_of_one_size_has_bars,
    figures.a_breakdown_opens_into_its_pieces, timelines.a_timeline_finds_and_tells_times,
    timelines.a_tip_has_exact_times_and_the_cause, timelines.a_record_has_arrows_from_its_causes,
    timelines.a_path_has_arrows_along_it, timelines.a_completion_leads_back_to_the_call_that_posted,
    timelines.a_long_timeline_stays_fluid, figures.nothing_is_loaded_from_elsewhere,
    links.hovering_a_link_shows_its_use, links.a_busier_link_is_wider, links.a_folded_link_says_what_it_stands_for,
    links.links_have_the_names_of_their_counters, links.capacities_follow_from_the_scenario,
    links.a_link_and_its_row_choose_each_other, links.shares_of_a_sweep_follow_from_the_scenario_of_each_value,
    comparisons.two_results_have_the_numbers_of_compare, comparisons.two_results_have_the_verdict_of_compare,
    comparisons.a_comparison_filters_and_draws_both, comparisons.only_results_of_one_name_are_compared,
    figures.a_panel_shows_what_it_chooses, figures.a_watched_page_follows_its_file,
    figures.both_colour_schemes_can_be_read, figures.odd_results_leave_the_others_as_they_are)}
CASES_WITHOUT_SCRIPTS = {case.__name__: case for case in (figures.without_scripts_there_are_the_pictures,)}


def fails(page, name, run):
    try:
        page.browser.set_window_size(1280, 1400)
        run(page)
    except Exception:  # of the case or of the browser: the others still run
        traceback.print_exc()
        print(f'FAILED {name}', flush=True)
        return True
    print(f'ok     {name}', flush=True)
    return False


def main():
    program, folder, case = sys.argv[1:]
    if shutil.which('chromium') is None or shutil.which('chromedriver') is None:
        print('there is no browser (Debian: chromium, chromium-driver)')
        return 77
    if case == 'results':
        results(program, folder)
        return 0
    if case == 'all':
        results(program, folder)
    wrong = 0
    for arguments, cases in (([], CASES), (['--blink-settings=scriptEnabled=false'], CASES_WITHOUT_SCRIPTS)):
        wanted = {name: run for name, run in cases.items() if case in ('all', name)}
        page = Page(folder, *arguments) if wanted else None
        try:
            wrong += sum(fails(page, name, run) for name, run in wanted.items())
        finally:
            if page:
                page.browser.quit()
    return 1 if wrong else 0


sys.exit(main())
