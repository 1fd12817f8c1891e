//! Addresses of pages, and where a redirect leads.

use http::Uri;

/// A whole address over HTTP.
pub(super) fn uri(text: &str) -> Option<Uri> {
    let text = text.trim();
    // What is behind it stays with the one who asks.
    let text = text.split_once('#').map_or(text, |(text, _)| text);
    let uri: Uri = text.parse().ok()?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    (known && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}

/// Where `location` leads from `base`.
pub(super) fn joined(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.trim();
    if location.contains("://") && !location.starts_with(['/', '?']) {
        return uri(location);
    }
    let scheme = base.scheme_str()?;
    if location.starts_with("//") {
        return uri(&format!("{scheme}:{location}"));
    }
    let authority = base.authority()?;
    let path = base.path();
    let path = if location.starts_with('/') {
        location.to_owned()
    } else if location.starts_with('?') {
        format!("{path}{location}")
    } else {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{directory}/{location}")
    };
    uri(&format!("{scheme}://{authority}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_somewhere() {
        let base = uri("http://a.test:81/b/c?d=1").unwrap();
        for (location, expected) in [
            ("https://x.test/y", Some("https://x.test/y")),
            ("//x.test/y", Some("http://x.test/y")),
            ("/y?z=1#f", Some("http://a.test:81/y?z=1")),
            ("y", Some("http://a.test:81/b/y")),
            ("?q", Some("http://a.test:81/b/c?q")),
            ("ftp://x.test/", None),
            ("file:///etc/passwd", None),
        ] {
            let expected = expected.map(|text| text.parse::<Uri>().unwrap());
            assert_eq!(joined(&base, location), expected, "{location}");
        }
        for wrong in ["", "x", "/x", "http://", "gopher://a/"] {
            assert_eq!(uri(wrong), None, "{wrong}");
        }
    }
}
