//! The text after the options of a help, as sections of a manual page.

use clap_mangen::roff::{Roff, roman};

/// The start of each section in the text and its heading in the page, in the order of the page.
const SECTIONS: [(&str, &str); 5] = [
    ("Routes:", "ROUTES"),
    ("Exit codes:", "EXIT STATUS"),
    ("Environment:", "ENVIRONMENT"),
    ("Files:", "FILES"),
    ("Examples:", "EXAMPLES"),
];

/// Lines without an empty line between them.
struct HelpParagraph<'t> {
    /// The heading of the section; `None` for the rest of the description.
    heading: Option<&'static str>,
    lines: Vec<&'t str>,
}

fn split_paragraphs(text: &str) -> Vec<HelpParagraph<'_>> {
    let mut blocks: Vec<HelpParagraph<'_>> = Vec::new();
    let mut is_after_gap = true;
    for line in text.lines() {
        if line.trim().is_empty() {
            is_after_gap = true;
            continue;
        }
        let begun = SECTIONS.iter().find_map(|(start, heading)| Some((*heading, line.strip_prefix(start)?.trim())));
        match (begun, blocks.last_mut()) {
            (Some((heading, rest)), _) => {
                let lines = Some(rest).filter(|rest| !rest.is_empty()).into_iter().collect();
                blocks.push(HelpParagraph { heading: Some(heading), lines });
            }
            (None, Some(block)) if !is_after_gap => block.lines.push(line),
            (None, _) => blocks.push(HelpParagraph { heading: None, lines: vec![line] }),
        }
        is_after_gap = false;
    }
    blocks
}

/// The paragraphs of `text` that belong to the description.
pub(super) fn render_description_paragraphs(text: &str) -> Roff {
    let mut page = Roff::new();
    for block in split_paragraphs(text).iter().filter(|block| block.heading.is_none()) {
        page.control("PP", []);
        add_paragraph_lines(&mut page, &block.lines);
    }
    page
}

pub(super) fn render_headed_sections(text: &str) -> Roff {
    let mut page = Roff::new();
    let blocks = split_paragraphs(text);
    for (_, heading) in SECTIONS {
        for block in blocks.iter().filter(|block| block.heading == Some(heading)) {
            page.control("SH", [heading]);
            add_paragraph_lines(&mut page, &block.lines);
        }
    }
    page
}

/// Renders indented lines verbatim, and all others as a paragraph.
fn add_paragraph_lines(page: &mut Roff, lines: &[&str]) {
    let mut is_verbatim = false;
    for line in lines {
        let indented = line.strip_prefix("  ");
        if indented.is_some() != is_verbatim {
            is_verbatim = indented.is_some();
            switch_verbatim(page, is_verbatim);
        }
        page.text([roman(indented.unwrap_or(line))]);
    }
    if is_verbatim {
        switch_verbatim(page, false);
    }
}

fn switch_verbatim(page: &mut Roff, to_verbatim: bool) {
    if to_verbatim {
        page.control("RS", ["4"]);
        page.control("nf", []);
    } else {
        page.control("fi", []);
        page.control("RE", []);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
The gate denies this.
Exit codes: 0 allow,
1 deny.

Examples:
  clresolve gate a.eth
    --json

Your own file is not read.";

    #[test]
    fn paragraphs_without_heading_are_description() {
        let page = render_description_paragraphs(TEXT).to_roff();
        assert_eq!(page, ".PP\nThe gate denies this.\n.PP\nYour own file is not read.\n");
    }

    #[test]
    fn sections_have_their_own_headings() {
        let page = render_headed_sections(TEXT).to_roff();
        let examples = ".SH EXAMPLES\n.RS 4\n.nf\nclresolve gate a.eth\n  \\-\\-json\n.fi\n.RE\n";
        assert_eq!(page, format!(".SH \"EXIT STATUS\"\n0 allow,\n1 deny.\n{examples}"));
    }
}
