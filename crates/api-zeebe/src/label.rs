//! The words that callers give to process instances: what they may look like on this wire.

use tonic::Status;

use crate::limit::{BUSINESS_ID_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX};

/// Tags are few and short words.
pub(crate) fn check_tags(tags: &[String]) -> Result<(), Status> {
    if tags.len() > TAGS_MAX {
        return Err(Status::invalid_argument(format!(
            "Expected at most {TAGS_MAX} tags, but {} were given",
            tags.len()
        )));
    }
    match tags.iter().find(|tag| !is_tag(tag)) {
        None => Ok(()),
        Some(tag) => Err(Status::invalid_argument(format!(
            "Expected a tag to be a letter followed by letters, digits, '_', '-', ':' or '.', \
             {TAG_CHARS_MAX} characters at most, but it is '{tag}'"
        ))),
    }
}

fn is_tag(tag: &str) -> bool {
    let may_follow = |letter: char| letter.is_ascii_alphanumeric() || "_-:.".contains(letter);
    tag.starts_with(|first: char| first.is_ascii_alphabetic())
        && tag.len() <= TAG_CHARS_MAX
        && tag.chars().all(may_follow)
}

/// A business id is any text that is not too long.
pub(crate) fn check_business_id(business_id: &str) -> Result<(), Status> {
    if business_id.chars().count() <= BUSINESS_ID_CHARS_MAX {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "Expected a business id of {BUSINESS_ID_CHARS_MAX} characters at most, but it is longer"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_words() {
        let long = "x".repeat(TAG_CHARS_MAX);
        let longer = "x".repeat(TAG_CHARS_MAX + 1);
        for (tag, good) in [
            ("a", true),
            ("order:42.b_c-d", true),
            (long.as_str(), true),
            (longer.as_str(), false),
            ("", false),
            ("1a", false),
            ("a b", false),
            ("ä", false),
        ] {
            assert_eq!(check_tags(&[tag.to_owned()]).is_ok(), good, "{tag}");
        }
        assert!(check_tags(&vec!["a".to_owned(); TAGS_MAX]).is_ok());
        assert!(check_tags(&vec!["a".to_owned(); TAGS_MAX + 1]).is_err());
    }
}
