//! Personal data (CL-33, CL-83), recognized by pattern (e-mail addresses, telephone numbers), by checksum (payment
//! card numbers, IBANs, Brazil's CPF), or by a member's name together with a value of the matching form.

use std::net::IpAddr;

use serde_json::Number;

use super::{CharacterClasses, TokenSeparators, contains_ignore_case};

/// Names of members of `meta` that hold the publisher's contact data.
pub(super) fn is_contact_member(name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["publisher", "support", "security", "maintainer", "maintainers", "author", "authors", "abuse"];
    contains_ignore_case(name, "contact") || NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Maximum number of candidates per card whose checksum is computed or whose name is looked up. Honest cards have a
/// few.
const MAX_CANDIDATES: usize = 2048;

/// The number of candidates in a card that may still be examined.
pub(super) struct PersonalDataSearchBudget {
    left: usize,
}

impl PersonalDataSearchBudget {
    pub(super) const fn new() -> Self {
        Self { left: MAX_CANDIDATES }
    }

    /// Whether another candidate may be examined, which uses up one.
    const fn try_spend(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

/// The kind of the first personal datum in `text`, never the datum itself.
pub(super) fn find_personal_datum(
    text: &str,
    marks: CharacterClasses,
    search: &mut PersonalDataSearchBudget,
) -> Option<String> {
    if marks.has_any(CharacterClasses::AT) && has_email(text) {
        return Some("an e-mail address".to_owned());
    }
    if !marks.has_any(CharacterClasses::DIGIT) {
        return None;
    }
    let found = if has_telephone(text) {
        Some("a telephone number")
    } else if let Some(number) = find_card_number_or_cpf(text, search) {
        Some(number)
    } else if marks.has_any(CharacterClasses::UPPER) && has_iban(text, search) {
        Some("an IBAN")
    } else if marks.has_any(CharacterClasses::COLON | CharacterClasses::EQUALS) {
        find_assigned_personal_data(text, search)
    } else {
        None
    };
    found.map(str::to_owned)
}

/// The kind of data that a member's name indicates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PersonalDataMemberKind {
    Birth,
    Identifier,
    Passport,
    PaymentCard,
    PostalAddress,
    UserAddress,
    UserLocation,
}

/// Names of members that hold personal data, in lower case and without separators, sorted.
const PROMISES: [(&str, PersonalDataMemberKind); 50] = [
    ("aadhaar", PersonalDataMemberKind::Identifier),
    ("aadhaarnumber", PersonalDataMemberKind::Identifier),
    ("addressline1", PersonalDataMemberKind::PostalAddress),
    ("billingaddress", PersonalDataMemberKind::PostalAddress),
    ("birthdate", PersonalDataMemberKind::Birth),
    ("birthday", PersonalDataMemberKind::Birth),
    ("bsn", PersonalDataMemberKind::Identifier),
    ("cardnumber", PersonalDataMemberKind::PaymentCard),
    ("coordinates", PersonalDataMemberKind::UserLocation),
    ("cpf", PersonalDataMemberKind::Identifier),
    ("creditcard", PersonalDataMemberKind::PaymentCard),
    ("creditcardnumber", PersonalDataMemberKind::PaymentCard),
    ("curp", PersonalDataMemberKind::Identifier),
    ("dateofbirth", PersonalDataMemberKind::Birth),
    ("debitcard", PersonalDataMemberKind::PaymentCard),
    ("deliveryaddress", PersonalDataMemberKind::PostalAddress),
    ("dob", PersonalDataMemberKind::Birth),
    ("driverlicensenumber", PersonalDataMemberKind::Identifier),
    ("driverslicense", PersonalDataMemberKind::Identifier),
    ("driverslicensenumber", PersonalDataMemberKind::Identifier),
    ("geolocation", PersonalDataMemberKind::UserLocation),
    ("gps", PersonalDataMemberKind::UserLocation),
    ("homeaddress", PersonalDataMemberKind::PostalAddress),
    ("idcardnumber", PersonalDataMemberKind::Identifier),
    ("identitycardnumber", PersonalDataMemberKind::Identifier),
    ("ip", PersonalDataMemberKind::UserAddress),
    ("ipaddress", PersonalDataMemberKind::UserAddress),
    ("location", PersonalDataMemberKind::UserLocation),
    ("mailingaddress", PersonalDataMemberKind::PostalAddress),
    ("nationalid", PersonalDataMemberKind::Identifier),
    ("nationalidentifier", PersonalDataMemberKind::Identifier),
    ("nationalidnumber", PersonalDataMemberKind::Identifier),
    ("nationalinsurancenumber", PersonalDataMemberKind::Identifier),
    ("nhsnumber", PersonalDataMemberKind::Identifier),
    ("nino", PersonalDataMemberKind::Identifier),
    ("passport", PersonalDataMemberKind::Passport),
    ("passportno", PersonalDataMemberKind::Passport),
    ("passportnumber", PersonalDataMemberKind::Passport),
    ("paymentcardnumber", PersonalDataMemberKind::PaymentCard),
    ("personalidnumber", PersonalDataMemberKind::Identifier),
    ("pesel", PersonalDataMemberKind::Identifier),
    ("postaladdress", PersonalDataMemberKind::PostalAddress),
    ("residentialaddress", PersonalDataMemberKind::PostalAddress),
    ("shippingaddress", PersonalDataMemberKind::PostalAddress),
    ("socialinsurancenumber", PersonalDataMemberKind::Identifier),
    ("socialsecurity", PersonalDataMemberKind::Identifier),
    ("socialsecuritynumber", PersonalDataMemberKind::Identifier),
    ("ssn", PersonalDataMemberKind::Identifier),
    ("street", PersonalDataMemberKind::PostalAddress),
    ("streetaddress", PersonalDataMemberKind::PostalAddress),
];

/// Persons whose addresses and locations are personal. Other addresses are covered by CL-32.
const PERSONS: [&str; 9] =
    ["user", "client", "customer", "visitor", "caller", "patient", "subscriber", "buyer", "person"];

/// Length of the shortest name in the table, in bytes.
const MIN_NAME_BYTES: usize = 3;

/// Maximum length of a member name that is compared, in bytes.
const MAX_NAME_BYTES: usize = 48;

/// Maximum length of a value that such a member may hold, in bytes.
const MAX_DATUM_BYTES: usize = 128;

fn personal_data_kind(name: &str) -> Option<PersonalDataMemberKind> {
    if !(MIN_NAME_BYTES..=MAX_NAME_BYTES).contains(&name.len()) {
        return None;
    }
    let (mut plain, mut length) = ([0; MAX_NAME_BYTES], 0);
    for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
        plain[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = &plain[..length];
    let known = |name: &[u8]| {
        let at = PROMISES.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
        Some(PROMISES[at].1)
    };
    let persons = || PERSONS.iter().filter(|person| plain.first() == person.as_bytes().first());
    let of_person = || persons().find_map(|person| known(plain.strip_prefix(person.as_bytes())?));
    let is_of_person = |promise: &PersonalDataMemberKind| {
        matches!(promise, PersonalDataMemberKind::UserAddress | PersonalDataMemberKind::UserLocation)
    };
    known(plain).filter(|promise| !is_of_person(promise)).or_else(of_person)
}

/// The kind of the personal datum in a member of this name, if its value has the matching form.
pub(super) fn find_personal_data_in_member(
    name: &str,
    text: &str,
    search: &mut PersonalDataSearchBudget,
) -> Option<&'static str> {
    // Every datum contains a digit; most texts are long or contain none.
    let is_candidate = text.len() <= MAX_DATUM_BYTES && text.bytes().any(|b| b.is_ascii_digit());
    if is_candidate && search.try_spend() { find_personal_data_lazily(name, || text) } else { None }
}

/// Like [`find_personal_data_in_member`], but reads the value only if the name indicates personal data.
fn find_personal_data_lazily<'t>(name: &str, text: impl FnOnce() -> &'t str) -> Option<&'static str> {
    let promise = personal_data_kind(name)?;
    let text = text().trim();
    if text.is_empty() || text.len() > MAX_DATUM_BYTES {
        return None;
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let fits = |marks: &[u8]| text.bytes().all(|b| b.is_ascii_alphanumeric() || marks.contains(&b));
    match promise {
        PersonalDataMemberKind::Birth => is_date(text).then_some("a date of birth"),
        PersonalDataMemberKind::Identifier => {
            (digits >= 5 && text.len() <= 24 && fits(b" -./")).then_some("a national identifier")
        }
        PersonalDataMemberKind::Passport => {
            (digits >= 5 && text.len() <= 16 && fits(b" -<")).then_some("a passport number")
        }
        PersonalDataMemberKind::PaymentCard => find_card_number_or_cpf(text, &mut PersonalDataSearchBudget::new()),
        PersonalDataMemberKind::PostalAddress => {
            let has_words = text.chars().any(char::is_alphabetic) && text.contains(' ');
            (has_words && digits > 0 && !text.contains("://")).then_some("a postal address")
        }
        PersonalDataMemberKind::UserAddress => {
            let address = text.parse::<IpAddr>().ok()?;
            (!address.is_unspecified() && !address.is_loopback()).then_some("the IP address of a person")
        }
        PersonalDataMemberKind::UserLocation => is_coordinates(text).then_some("the location of a person"),
    }
}

/// Like [`find_personal_data_in_member`], for a number.
pub(super) fn find_personal_data_in_number(
    name: &str,
    number: &Number,
    search: &mut PersonalDataSearchBudget,
) -> Option<&'static str> {
    let is_named = search.try_spend() && personal_data_kind(name).is_some();
    if is_named { find_personal_data_in_member(name, &number.to_string(), search) } else { None }
}

/// `1990-04-12`, `12.04.1990`, `04/12/1990`, optionally followed by a time.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or_default();
    let mut parts = day.split(['-', '/', '.']);
    let (Some(a), Some(b), Some(c), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let is = |part: &str, most: usize| (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let is_year = |part: &str| part.len() == 4 && is(part, 4);
    is(b, 2) && (is_year(a) && is(c, 2) || is(a, 2) && is_year(c))
}

/// A latitude and a longitude as decimal fractions.
fn is_coordinates(text: &str) -> bool {
    let within = |part: &str, most: f64| {
        part.contains('.') && part.trim().parse::<f64>().is_ok_and(|degrees| degrees.abs() <= most)
    };
    text.split_once(',').is_some_and(|(latitude, longitude)| within(latitude, 90.0) && within(longitude, 180.0))
}

/// Maximum length of an assignment's value in a text, in bytes.
const MAX_ASSIGNED_BYTES: usize = 32;

/// Maximum length of a name before a colon or an equals sign in a text, in words.
const MAX_NAME_WORDS: usize = 3;

/// An assignment in a text, such as `ssn: 123-45-6789`, counts as a member.
fn find_assigned_personal_data(text: &str, search: &mut PersonalDataSearchBudget) -> Option<&'static str> {
    let is_of_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'-');
    let end = text.rfind(':').max(text.rfind('=')).map_or(0, |last| last + 1);
    let signs = text.as_bytes()[..end].windows(2).enumerate();
    let named = signs.filter(|(_, pair)| matches!(pair[1], b':' | b'=') && is_of_name(pair[0]));
    named.map(|(before, _)| before + 1).find_map(|at| {
        let head = &text[text.ceil_char_boundary(at.saturating_sub(MAX_NAME_BYTES))..at];
        let name = super::longest_matching_suffix(head, is_of_name).trim();
        if name.len() < MIN_NAME_BYTES || !search.try_spend() {
            return None;
        }
        let rest = &text[at + 1..text.floor_char_boundary(at + 1 + MAX_ASSIGNED_BYTES)];
        let first =
            || TokenSeparators::ascii(b",;)\"").first_token(rest.trim_start()).trim_end_matches(['.', '!', '?']);
        let starts = name.rmatch_indices(' ').map(|(space, _)| space + 1).take(MAX_NAME_WORDS - 1).chain([0]);
        starts.take(MAX_NAME_WORDS).find_map(|start| find_personal_data_lazily(&name[start..], first))
    })
}

/// The groupings of digits in which payment card numbers are written.
const CARD_SHAPES: [&[usize]; 11] =
    [&[4, 4, 4, 4], &[4, 4, 4, 4, 3], &[4, 6, 5], &[4, 6, 4], &[13], &[14], &[15], &[16], &[17], &[18], &[19]];

/// Minimum number of digits in a payment card number.
const MIN_CARD_DIGITS: usize = 13;

/// A payment card number, or a CPF, among the groups of digits in a text.
fn find_card_number_or_cpf(text: &str, search: &mut PersonalDataSearchBudget) -> Option<&'static str> {
    let mut groups: Vec<&str> = Vec::new();
    let has_number = text.bytes().filter(u8::is_ascii_digit).count() >= MIN_CARD_DIGITS;
    let mut rest = if has_number { text } else { "" };
    // Terminates: each iteration consumes at least one byte.
    while let Some(start) = rest.bytes().position(|b| b.is_ascii_digit()) {
        let before = rest.as_bytes().get(start.wrapping_sub(1)).copied();
        let end = rest[start..].bytes().position(|b| !b.is_ascii_digit()).map_or(rest.len(), |length| start + length);
        let (group, after) = (&rest[start..end], rest.as_bytes().get(end).copied());
        let is_joined = start == 1 && matches!(before, Some(b' ' | b'-')) && !groups.is_empty();
        if !is_joined {
            groups.clear();
        }
        let is_word =
            |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'/'));
        rest = &rest[end..];
        if !matches!(group.len(), 3..=6 | 13..=19) {
            groups.clear();
            continue;
        }
        if groups.is_empty() && is_word(before) {
            continue;
        }
        if groups.len() == MAX_GROUPS {
            groups.remove(0);
        }
        groups.push(group);
        let is_end = !after.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || !b.is_ascii());
        if is_end && ends_in_card_number(&groups, search) {
            return Some("a payment card number");
        }
    }
    (text.contains('-') && has_cpf(text, search)).then_some("a national identifier")
}

/// Maximum number of groups of digits in one number.
const MAX_GROUPS: usize = 5;

/// Whether the last groups form a payment card number: a known grouping, an issuer's prefix, and the Luhn check digit.
fn ends_in_card_number(groups: &[&str], search: &mut PersonalDataSearchBudget) -> bool {
    if !groups.last().is_some_and(|group| matches!(group.len(), 3..=5 | 13..=19)) {
        return false;
    }
    CARD_SHAPES.iter().any(|shape| {
        let Some(groups) = groups.len().checked_sub(shape.len()).map(|start| &groups[start..]) else { return false };
        groups.iter().zip(*shape).all(|(group, length)| group.len() == *length) && search.try_spend() && {
            let number = groups.concat();
            is_issued_card_number(&number) && has_luhn_checksum(&number)
        }
    })
}

/// The ISO/IEC 7812 ranges from which cards are issued, by their first four digits, with the lengths of the numbers.
fn is_issued_card_number(number: &str) -> bool {
    let prefix: u32 = number.get(..4).and_then(|head| head.parse().ok()).unwrap_or_default();
    let lengths = match prefix {
        4000..=4999 => [13, 16, 19].as_slice(),
        5100..=5599 | 2221..=2720 => &[16],
        3400..=3499 | 3700..=3799 => &[15],
        3000..=3059 | 3600..=3699 | 3800..=3999 => &[14, 16],
        6011 | 6200..=6299 | 6440..=6599 | 3528..=3589 => &[16, 17, 18, 19],
        _ => &[],
    };
    lengths.contains(&number.len())
}

fn has_luhn_checksum(number: &str) -> bool {
    let sum: u32 = number
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| {
            let digit = u32::from(byte - b'0') << (at % 2);
            digit / 10 + digit % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

/// A Brazilian CPF, `000.000.000-00`, with its two check digits.
fn has_cpf(text: &str, search: &mut PersonalDataSearchBudget) -> bool {
    const SHAPE: &[u8] = b"000.000.000-00";
    let is_cpf = |part: &[u8]| {
        let fits = part.iter().zip(SHAPE).all(|(b, s)| if *s == b'0' { b.is_ascii_digit() } else { b == s });
        let digits: Vec<u32> = part.iter().filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0')).collect();
        let check = |count: usize| {
            let sum: u32 = digits[..count].iter().rev().zip(2..).map(|(digit, weight)| digit * weight).sum();
            sum * 10 % 11 % 10 == digits[count]
        };
        fits && digits.iter().any(|digit| *digit != digits[0]) && check(9) && check(10)
    };
    let dashes = text.bytes().enumerate().filter(|(_, byte)| *byte == b'-').map(|(at, _)| at);
    dashes.filter_map(|at| at.checked_sub(11)).any(|start| {
        let bytes = text.as_bytes();
        let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
        let apart = !is_digit(start.checked_sub(1)) && !is_digit(Some(start + SHAPE.len()));
        let part = bytes.get(start..start + SHAPE.len()).filter(|part| part[3] == b'.' && part[7] == b'.');
        apart && part.is_some_and(|part| search.try_spend() && is_cpf(part))
    })
}

/// Countries with IBANs (ISO 13616) and the length of each, sorted.
const IBAN_LENGTHS: [(&[u8; 2], usize); 81] = [
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
];

/// An IBAN in upper case with a valid checksum, in one piece or in groups of four.
fn has_iban(text: &str, search: &mut PersonalDataSearchBudget) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: Option<&u8>| {
        byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/') || !b.is_ascii())
    };
    (0..bytes.len().saturating_sub(14)).any(|at| {
        let is_head = bytes[at].is_ascii_uppercase()
            && bytes[at + 1].is_ascii_uppercase()
            && bytes[at + 2].is_ascii_digit()
            && bytes[at + 3].is_ascii_digit();
        let is_start = at == 0 || !is_word(bytes.get(at - 1));
        let mut length = || {
            let country =
                IBAN_LENGTHS.binary_search_by(|(country, _)| country.as_slice().cmp(&bytes[at..at + 2])).ok()?;
            search.try_spend().then_some(IBAN_LENGTHS[country].1)
        };
        is_head && is_start && length().is_some_and(|length| is_iban(&bytes[at..], length))
    })
}

/// Whether these bytes begin with an IBAN of this length.
fn is_iban(bytes: &[u8], length: usize) -> bool {
    let is_grouped = bytes.get(4) == Some(&b' ');
    let spaces = if is_grouped { (length - 1) / 4 } else { 0 };
    let Some(written) = bytes.get(..length + spaces) else { return false };
    let is_space = |at: usize| is_grouped && at % 5 == 4;
    let fits =
        |(at, b): (usize, &u8)| if is_space(at) { *b == b' ' } else { b.is_ascii_uppercase() || b.is_ascii_digit() };
    if !written.iter().enumerate().all(fits) || bytes.get(length + spaces).is_some_and(u8::is_ascii_alphanumeric) {
        return false;
    }
    let (head, body) = written.split_at(4);
    let characters = body.iter().chain(head).filter(|b| **b != b' ');
    let remainder = characters.fold(0_u32, |remainder, byte| match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        _ => (remainder * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    remainder == 1
}

fn has_email(text: &str) -> bool {
    const TOKENS: TokenSeparators = TokenSeparators::ascii(b",;\"'`()<>[]|{}=");
    TOKENS.split(text).filter(|token| token.contains('@') && !token.contains("://")).any(is_email)
}

/// `local@domain.tld`, with a top-level domain of letters. Git remotes do not count.
fn is_email(token: &str) -> bool {
    let token = token.strip_prefix("mailto:").unwrap_or(token);
    let token = token.split('?').next().unwrap_or(token).trim_end_matches(['.', ':', '!']);
    let Some((local, domain)) = token.split_once('@') else {
        return false;
    };
    let local_fits = !local.is_empty()
        && !local.eq_ignore_ascii_case("git")
        && local.bytes().all(|b| b.is_ascii_alphanumeric() || b"._%+-".contains(&b) || !b.is_ascii());
    let domain_fits = domain.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b) || !b.is_ascii());
    let Some((name, top)) = domain.rsplit_once('.') else {
        return false;
    };
    local_fits && domain_fits && !name.is_empty() && is_top_level(top)
}

fn is_top_level(label: &str) -> bool {
    label.len() >= 2 && label.chars().all(char::is_alphabetic)
}

fn has_telephone(text: &str) -> bool {
    let international = text.contains('+') && (contains_ignore_case(text, "tel:+") || has_international_number(text));
    international || has_north_american_number(text)
}

/// `+` and 8 to 15 digits in at least two groups, the notation of E.164 numbers for people.
fn has_international_number(text: &str) -> bool {
    text.match_indices('+').any(|(at, _)| {
        let free = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "(:,;".contains(c));
        let number = &text[at + 1..];
        let end = number.find(|c: char| !c.is_ascii_digit() && !" -.()/".contains(c)).unwrap_or(number.len());
        let number = number[..end].trim_end();
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        free && number.starts_with(|c: char| c.is_ascii_digit()) && (8..=15).contains(&digits) && digits < number.len()
    })
}

/// Three, three and four digits, at the start or after a space: `415-555-2671`, `(415) 555-2671`, `415.555.2671`.
fn has_north_american_number(text: &str) -> bool {
    const SHAPES: [&[u8]; 4] = [b"000-000-0000", b"000.000.0000", b"(000) 000-0000", b"(000)000-0000"];
    let fits = |text: &[u8], shape: &[u8]| {
        let same = |(b, s): (&u8, &u8)| if *s == b'0' { b.is_ascii_digit() } else { b == s };
        let ends = || text.get(shape.len()).is_none_or(|after| !after.is_ascii_alphanumeric() && *after != b'-');
        text.len() >= shape.len() && text.iter().zip(shape).all(same) && ends()
    };
    let starts = std::iter::once(0).chain(text.match_indices(' ').map(|(at, _)| at + 1));
    let mut numbers = starts.map(|at| &text.as_bytes()[at..]).filter(|rest| matches!(rest, [b'(' | b'0'..=b'9', ..]));
    numbers.any(|rest| SHAPES.iter().any(|shape| fits(rest, shape)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<String> {
        find_personal_datum(text, CharacterClasses::from_text(text), &mut PersonalDataSearchBudget::new())
    }

    #[test]
    fn mail_addresses_and_telephone_numbers_are_found() {
        for personal in [
            "jane.doe@commandlayer.org",
            "user@example.com",
            "mailto:jane@commandlayer.org?subject=x",
            "ask <jane@commandlayer.org>.",
            "jané@commandlayer.org",
            "tel:+14155552671",
            "+1 415 555 2671",
            "call +44 (20) 7946-0958!",
            "415-555-2671",
            "phone (415) 555-2671.",
        ] {
            assert!(text(personal).is_some(), "{personal}");
        }
    }

    #[test]
    fn numbers_with_a_right_checksum_are_found() {
        for (personal, kind) in [
            ("4111 1111 1111 1111", "a payment card number"),
            ("pay with 5500-0055-5555-5559 please", "a payment card number"),
            ("2025 4242 4242 4242 4242", "a payment card number"),
            ("card=378282246310005;", "a payment card number"),
            ("3782 822463 10005", "a payment card number"),
            ("6011000990139424.", "a payment card number"),
            ("DE89 3704 0044 0532 0130 00", "an IBAN"),
            ("to GB29NWBK60161331926819, thanks", "an IBAN"),
            ("NO93 8601 1117 947", "an IBAN"),
            ("529.982.247-25", "a national identifier"),
        ] {
            assert_eq!(text(personal).as_deref(), Some(kind), "{personal}");
        }
        for other in [
            "4111 1111 1111 1112",
            "4111-1111-11111111",
            "14111 1111 1111 1111",
            "1711111111111",
            "9007199254740993",
            "x4111111111111111",
            "0.4111111111111111",
            "4111111111111111a",
            "token 1000000000000000000",
            "0x4111111111111111",
            "DE89 3704 0044 0532 0130 01",
            "GB29NWBK60161331926819A",
            "XX89370400440532013000",
            "de89370400440532013000",
            "529.982.247-26",
            "111.111.111-11",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }

    fn member(name: &str, text: &str) -> Option<&'static str> {
        find_personal_data_in_member(name, text, &mut PersonalDataSearchBudget::new())
    }

    #[test]
    fn members_promise_what_they_hold() {
        for (name, value, kind) in [
            ("date_of_birth", "1990-04-12", "a date of birth"),
            ("dob", "12.04.1990", "a date of birth"),
            ("birthDate", "1990-04-12T00:00:00Z", "a date of birth"),
            ("ssn", "078-05-1120", "a national identifier"),
            ("nationalId", "AB 123456 C", "a national identifier"),
            ("passport_number", "X1234567", "a passport number"),
            ("creditCardNumber", "4111111111111111", "a payment card number"),
            ("home_address", "12 Main Street, Springfield", "a postal address"),
            ("user_ip", "203.0.113.7", "the IP address of a person"),
            ("clientIpAddress", "2001:db8::7", "the IP address of a person"),
            ("user_location", "52.5200, 13.4050", "the location of a person"),
        ] {
            assert_eq!(member(name, value), Some(kind), "{name}: {value}");
        }
        for (name, value) in [
            ("date_of_birth", "required"),
            ("date_of_birth", "YYYY-MM-DD"),
            ("date", "1990-04-12"),
            ("ssn", "never asked for"),
            ("ssn", "redacted"),
            ("passport", "required for 3 countries"),
            ("passport_number", "string"),
            ("home_address", "https://home.example/a 1"),
            ("street", "string"),
            ("address", "12 Main Street"),
            ("ip", "203.0.113.7"),
            ("server_ip", "203.0.113.7"),
            ("user_ip", "logged for 30 days"),
            ("user_ip", "0.0.0.0"),
            ("user_location", "optional, by city"),
            ("location", "52.5200, 13.4050"),
            ("users", "12"),
        ] {
            assert_eq!(member(name, value), None, "{name}: {value}");
        }
        let number = |name, number: u64| {
            find_personal_data_in_number(name, &Number::from(number), &mut PersonalDataSearchBudget::new())
        };
        assert_eq!(number("ssn", 78_051_120), Some("a national identifier"));
        assert_eq!(number("max_tokens", 4_111_111_111_111_111), None);
    }

    #[test]
    fn tables_are_sorted_and_a_card_has_a_bound() {
        assert!(PROMISES.is_sorted_by_key(|(name, _)| *name) && IBAN_LENGTHS.is_sorted_by_key(|(country, _)| *country));
        let decoys = "4000 0000 0000 0000 ".repeat(MAX_CANDIDATES);
        assert_eq!(text(&format!("{decoys}4111 1111 1111 1111")), None);
    }

    #[test]
    fn assignments_in_texts_count_as_members() {
        for personal in [
            "SSN: 078-05-1120.",
            "the passport number: X1234567, and more",
            "dob=1990-04-12",
            "Date of birth: 1990-04-12 in Bonn",
        ] {
            assert!(text(personal).is_some(), "{personal}");
        }
        for other in ["ssn: see 4.2", "released: 1990-04-12", "date of birth: 3 fields", "ratio: 12345678"] {
            assert_eq!(text(other), None, "{other}");
        }
    }

    #[test]
    fn other_things_pass() {
        for other in [
            "@commandlayer",
            "npm:@commandlayer/agent-cards@1.0.0",
            "git@github.com:commandlayer/x.git",
            "https://user@commandlayer.org/x",
            "2025-11-22T00:00:00+00:00",
            "1.0.0+20251122",
            "+20251122",
            "192.168.100.2001",
            "978-3-16-148410-0",
            "tokens 100-200-3000-4000",
            "a+b 123",
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }
}
