//! The charts of the page: inline SVG. Positions and widths are percentages, so that text and strokes keep their size
//! on a phone. Each chart has a text alternative, and no state is shown by colour alone.

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use crate::history::ReportStateCounts;
use crate::overview::ExpiryTimeline;
use crate::page::utc_day;

/// The full width, in hundredths of a percent.
const WHOLE: u64 = 10_000;

/// Minimum width of a non-empty part, so that it is visible.
const LEAST: u64 = 60;

/// Minimum width of a bar's part that has room for its symbol.
const ROOM_FOR_SIGN: u64 = 350;

/// Height of a chart's columns, in pixels.
const COLUMN: u64 = 120;

/// Height of a line of text in a chart, in pixels.
const LINE: u64 = 22;

/// Minimum height of a column's part that has room for its number, in pixels.
const ROOM_FOR_NUMBER: u64 = 16;

/// Maximum number of reports whose columns have room for numbers and days on a phone.
pub(super) const MAX_LABELLED: usize = 8;

/// The states: CSS class, word and symbol.
pub(super) const STATES: [(&str, &str, &str); 3] =
    [("good", "trusted", "✓"), ("bad", "untrusted", "✗"), ("open", "indeterminate", "?")];

/// A position or width in percent.
fn percent_text(hundredths: u64) -> String {
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// The widths of the parts of a full bar. The largest part yields what the smallest need to be visible.
fn visible_widths<const N: usize>(parts: [u64; N]) -> [u64; N] {
    let sum: u128 = parts.iter().copied().map(u128::from).sum();
    if sum == 0 {
        return [0; N];
    }
    let width = |part: u64| match u64::try_from(u128::from(part) * u128::from(WHOLE) / sum) {
        Ok(width) if part > 0 => width.max(LEAST),
        _ => 0,
    };
    let mut widths = parts.map(width);
    let others: u64 = widths.iter().sum();
    if let Some(largest) = widths.iter_mut().max() {
        *largest = (*largest + WHOLE).saturating_sub(others);
    }
    widths
}

/// The counts of the states as text.
pub(super) fn states_in_words(states: [u64; 3]) -> String {
    let words = states.iter().zip(STATES).map(|(count, (_, word, _))| format!("{count} {word}"));
    words.collect::<Vec<_>>().join(", ")
}

/// The non-empty segments of a states bar: position, width, and the state's CSS class and symbol.
fn states_bar_segments(states: [u64; 3]) -> impl Iterator<Item = (u64, u64, &'static str, &'static str)> {
    let mut end = 0;
    let parts = visible_widths(states).into_iter().zip(STATES).filter(|(width, _)| *width > 0);
    parts.map(move |(width, (class, _, sign))| {
        end += width;
        (end - width, width, class, sign)
    })
}

/// A bar of the states with their symbols.
pub(super) fn states_bar(id: &str, title: &str, states: [u64; 3]) -> Markup {
    let parts = html! {
        @for (at, width, class, sign) in states_bar_segments(states) {
            rect class=(class) x=(percent_text(at)) width=(percent_text(width)) height="100%" {}
            @if width >= ROOM_FOR_SIGN { text x=(percent_text(at + width / 2)) y="50%" { (sign) } }
        }
    };
    svg_image("bar", "100%", id, [title, &states_in_words(states)], &parts)
}

/// An image with a title and a description.
fn svg_image(class: &str, height: &str, id: &str, [title, words]: [&str; 2], content: &Markup) -> Markup {
    html! {
        svg class=(class) role="img" aria-labelledby={ (id) "-title " (id) "-desc" } width="100%" height=(height) {
            title id={ (id) "-title" } { (title) }
            desc id={ (id) "-desc" } { (words) }
            (content)
        }
    }
}

/// A bar whose numbers are printed next to it, and therefore hidden from screen readers.
pub(super) fn small_states_bar(parts: [u64; 3]) -> Markup {
    html! {
        svg.small.bar aria-hidden="true" width="100%" height="10" {
            @for (at, width, class, _) in states_bar_segments(parts) {
                rect class=(class) x=(percent_text(at)) width=(percent_text(width)) height="10" {}
            }
        }
    }
}

/// A bar of length `part` of `whole`, whose number is printed next to it.
pub(super) fn proportional_bar(class: &str, part: u64, whole: u64) -> Markup {
    let [width, _] = visible_widths([part.min(whole), whole.saturating_sub(part)]);
    html! {
        svg.small aria-hidden="true" width="100%" height="10" {
            rect class=(class) width=(percent_text(width)) height="10" rx="2" {}
        }
    }
}

/// The states over time: a column per report next to a scale, with numbers and days if there is room.
pub(super) fn states_chart(reports: &[ReportStateCounts]) -> Markup {
    let title = format!("States in {} reports, the latest on the right", reports.len());
    let words = reports.iter().map(report_in_words).collect::<Vec<_>>().join("; ");
    let sum = |report: &ReportStateCounts| report.state_counts().into_iter().fold(0, u64::saturating_add);
    let most = reports.iter().map(sum).max().unwrap_or(1).max(1);
    let columns = html! {
        @for (number, report) in reports.iter().enumerate() { (report_column(report, number, reports.len(), most)) }
    };
    html! {
        div.plot {
            p.scale aria-hidden="true" { span { (most) } span { "0" } }
            (chart_svg("times", &title, &words, &columns))
        }
    }
}

fn report_column(report: &ReportStateCounts, number: usize, of: usize, most: u64) -> Markup {
    let is_labelled = of <= MAX_LABELLED;
    let middle = position_percent(number * 2 + 1, of * 2);
    let mut top = COLUMN;
    let parts = report.state_counts().into_iter().zip(STATES).map(|(names, (class, _, _))| {
        let height = column_height(names, most);
        top = top.saturating_sub(height);
        (names, class, top, height)
    });
    html! {
        @for (names, class, top, height) in parts {
            (column_rectangle(class, number, of, top, height))
            @if is_labelled && height >= ROOM_FOR_NUMBER { text.in x=(middle) y=(top + height / 2) { (names) } }
        }
        @if let Some(at) = report.checked.filter(|_| is_labelled) {
            (column_label(&middle, &at.strftime("%-d %b").to_string(), &at.strftime("%Y").to_string()))
        }
    }
}

/// Two lines of text below a column.
fn column_label(middle: &str, first: &str, second: &str) -> Markup {
    html! { @for (line, text) in [(1, first), (2, second)] { text x=(middle) y=(COLUMN + line * 16) { (text) } } }
}

/// The states of a report as text.
fn report_in_words(report: &ReportStateCounts) -> String {
    let date = report.checked.map_or_else(|| "no date".to_owned(), utc_day);
    format!("{date}: {}", states_in_words(report.state_counts()))
}

pub(super) fn expiries_chart(expiries: &ExpiryTimeline) -> Markup {
    let bins = expiry_bins(expiries);
    let known = bins.iter().filter(|bin| bin.names > 0);
    let words: Vec<_> =
        known.map(|bin| format!("{}: {}", [&*bin.month, &*bin.year].join(" ").trim_end(), bin.names)).collect();
    let most = bins.iter().map(|bin| bin.names).max().unwrap_or(1).max(1);
    let columns = html! {
        @for (number, bin) in bins.iter().enumerate() { (expiry_column(bin, number, bins.len(), most)) }
    };
    chart_svg("expiry", "Names by the month of their expiry", &words.join(", "), &columns)
}

fn expiry_column(ExpiryBin { month, year, names }: &ExpiryBin, number: usize, of: usize, most: u64) -> Markup {
    let height = column_height(*names, most);
    let class = match number {
        0 => "bad",
        1..=3 => "open",
        _ => "plain",
    };
    let middle = position_percent(number * 2 + 1, of * 2);
    // The year is printed below its first month.
    let begins = number == 1 || month == "Jan";
    html! {
        (column_rectangle(class, number, of, COLUMN - height, height))
        (column_label(&middle, month, if begins { year } else { "" }))
        @if *names > 0 { text.count x=(middle) dy="-6" y=(COLUMN - height) { (names) } }
    }
}

/// A column of the timeline. Expired names and names that expire later have no year.
struct ExpiryBin {
    month: String,
    year: String,
    names: u64,
}

/// The columns of the timeline: expired names, the months, and later ones.
fn expiry_bins(expiries: &ExpiryTimeline) -> Vec<ExpiryBin> {
    let bin = |month: &str, year: &str, names| ExpiryBin { month: month.to_owned(), year: year.to_owned(), names };
    let mut month = expiries.from.to_zoned(TimeZone::UTC).date().first_of_month();
    let mut bins = vec![bin("past", "", expiries.expired)];
    for names in expiries.months {
        bins.push(bin(&month.strftime("%b").to_string(), &month.strftime("%Y").to_string(), names));
        month = month.saturating_add(1.month());
    }
    bins.push(bin("later", "", expiries.later));
    bins
}

/// A chart of columns, with room for a line of text above and two below them.
fn chart_svg(id: &str, title: &str, words: &str, columns: &Markup) -> Markup {
    let height = COLUMN + 3 * LINE - 6;
    let content = html! {
        g transform={ "translate(0 " (LINE) ")" } { line x2="100%" y1=(COLUMN) y2=(COLUMN) {} (columns) }
    };
    svg_image("chart", &height.to_string(), id, [title, words], &content)
}

fn column_rectangle(class: &str, number: usize, of: usize, top: u64, height: u64) -> Markup {
    let (x, width) = (position_percent(number * 8 + 1, of * 8), position_percent(6, of * 8));
    html! { @if height > 0 { rect class=(class) x=(x) y=(top) width=(width) height=(height) {} } }
}

/// `part` of `whole` as a position.
fn position_percent(part: usize, whole: usize) -> String {
    let hundredths = part.saturating_mul(WHOLE as usize) / whole.max(1);
    percent_text(u64::try_from(hundredths).unwrap_or(WHOLE))
}

/// The height of a column; a non-empty one is visible.
fn column_height(names: u64, most: u64) -> u64 {
    let height = u64::try_from(u128::from(names) * u128::from(COLUMN) / u128::from(most)).unwrap_or(COLUMN);
    if names == 0 { 0 } else { height.max(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_bar_and_none_is_too_small_to_see() {
        assert_eq!(visible_widths([1, 1, 2]), [2_500, 2_500, 5_000]);
        assert_eq!(visible_widths([10_000, 1, 0]), [WHOLE - LEAST, LEAST, 0]);
        assert_eq!(visible_widths([0, 0, 0]), [0, 0, 0]);
        for parts in [[1, 1, 1], [u64::MAX, u64::MAX, 1], [7, 0, 9_999_999]] {
            assert_eq!(visible_widths(parts).iter().sum::<u64>(), WHOLE, "{parts:?}");
        }
    }

    #[test]
    fn a_bar_says_its_numbers_and_has_a_sign_beside_each_colour() {
        let bar = states_bar("now", "States now", [50, 74, 1]).into_string();
        assert!(bar.contains("role=\"img\" aria-labelledby=\"now-title now-desc\""), "{bar}");
        assert!(
            bar.contains(">States now</title>") && bar.contains(">50 trusted, 74 untrusted, 1 indeterminate</desc>")
        );
        assert!(bar.contains("<rect class=\"bad\" x=\"40.00%\" width=\"59.20%\""), "{bar}");
        assert!(bar.contains(">✓</text>") && bar.contains(">✗</text>") && !bar.contains(">?</text>"), "{bar}");
        let document = roxmltree::Document::parse(&bar).expect("XML");
        let rects = document.descendants().filter(|node| node.has_tag_name("rect")).count();
        assert_eq!(rects, 3);
    }

    #[test]
    fn columns_are_as_high_as_their_share() {
        let report = |trusted, untrusted| ReportStateCounts { trusted, untrusted, ..ReportStateCounts::default() };
        let chart = states_chart(&[report(10, 0), report(5, 5), report(9, 1)]).into_string();
        let document = roxmltree::Document::parse(&chart).expect("XML");
        let heights: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("rect"))
            .filter_map(|node| node.attribute("height"))
            .collect();
        assert_eq!(heights, ["120", "60", "60", "108", "12"]);
        let texts: Vec<_> =
            document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
        assert_eq!(texts, ["10", "5", "5", "9"], "the last is too low for its number");
        assert!(chart.contains("<span>10</span><span>0</span>"), "the scale: {chart}");
        assert!(chart.contains("no date: 10 trusted, 0 untrusted, 0 indeterminate"), "{chart}");
    }
}
