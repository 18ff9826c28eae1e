//! Parses the query of a request. Each parameter must be known to the route and occur at most once. A misspelt
//! parameter is rejected, since the client would otherwise get the answer to another question. The names of
//! `/v1/events`, whose query repeats a parameter, are parsed in that module.

use url::form_urlencoded;

/// Returns the values of the parameters `names`, in that order.
///
/// # Errors
/// A description of the unknown or repeated parameter.
pub(super) fn parse_query_parameters<const N: usize>(
    query: &str,
    names: [&str; N],
) -> Result<[Option<String>; N], String> {
    let mut values = [const { None }; N];
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(place) = names.iter().position(|name| *name == key) else {
            return Err(format!("expected {}, found the parameter {key}", names.join(" or ")));
        };
        if values[place].replace(value.into_owned()).is_some() {
            return Err(format!("{key} is given twice"));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_is_read_once_and_no_other() {
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(parse_query_parameters("b=+1%2B&a=", ["a", "b"]), Ok([value(""), value(" 1+")]));
        assert_eq!(parse_query_parameters("", ["a", "b"]), Ok([None, None]));
        assert_eq!(
            parse_query_parameters("a=1&c=2", ["a", "b"]),
            Err("expected a or b, found the parameter c".to_owned())
        );
        assert_eq!(parse_query_parameters("a=1&a=1", ["a", "b"]), Err("a is given twice".to_owned()));
    }
}
