//! The promises of [`crate::store`] as one suite that every backend runs.
//!
//! A backend brings a [`Backend`]: something that can open its store again and again, over the same
//! storage. Each case gets a fresh one. A case panics when a promise is broken.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::range::KeyRange;
use crate::stamp::Stamp;
use crate::store::{Checkpoint, Entry, KEY_BYTES_MAX, View};

/// Storage on which a store can be opened.
pub trait Backend {
    /// Opens the store; the one opened before is dropped by then.
    fn open(&self) -> Box<dyn Checkpoint>;
}

/// One case of the suite.
pub type Case = fn(&dyn Backend);

/// All cases with their names.
pub const CASES: &[(&str, Case)] = &[
    ("a_new_store_is_empty", a_new_store_is_empty),
    ("a_write_is_there_and_stays_after_reopening", a_write_is_there_and_stays_after_reopening),
    ("later_writes_replace_and_delete", later_writes_replace_and_delete),
    ("a_write_without_entries_moves_the_stamp", a_write_without_entries_moves_the_stamp),
    ("deleting_what_is_not_there_is_fine", deleting_what_is_not_there_is_fine),
    ("refused_writes_change_nothing", refused_writes_change_nothing),
    ("a_failing_source_abandons_the_write", a_failing_source_abandons_the_write),
    ("the_stamp_never_goes_back", the_stamp_never_goes_back),
    ("scans_see_their_range_in_order", scans_see_their_range_in_order),
    ("a_scan_stops_when_told", a_scan_stops_when_told),
    ("edges_and_split_cover_the_range", edges_and_split_cover_the_range),
    ("a_snapshot_keeps_its_state", a_snapshot_keeps_its_state),
    ("a_scan_keeps_its_state", a_scan_keeps_its_state),
    ("many_threads_read_while_one_writes", many_threads_read_while_one_writes),
    ("odd_keys_and_values_survive", odd_keys_and_values_survive),
    ("many_small_writes_equal_the_model", many_small_writes_equal_the_model),
];

/// Runs the whole suite, each case on a backend of its own.
pub fn run_all(fresh: &dyn Fn() -> Box<dyn Backend>) {
    for (name, case) in CASES {
        println!("conformance: {name}");
        case(fresh().as_ref());
    }
}

/// Writes a list of puts (`Some`) and deletes (`None`).
pub fn write(store: &dyn Checkpoint, lsn: u64, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
    let mut changes = entries.iter().map(|&(key, value)| {
        Ok(match value {
            Some(value) => Entry::put(key, value),
            None => Entry::delete(key),
        })
    });
    store.write(&mut changes, &stamp(lsn))
}

/// A stamp whose every field depends on its lsn.
pub fn stamp(lsn: u64) -> Stamp {
    Stamp {
        lsn,
        position: lsn.wrapping_mul(64),
        time_ms: 1_000 + lsn,
        checksum: !lsn,
        format: 3,
        meta: lsn.to_string().into_bytes(),
    }
}

/// Everything a view shows, by scan; checks that the allocating scan and point reads agree.
pub fn contents(view: &dyn View) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    view.scan_with(&KeyRange::all(), &mut |key, value| {
        assert!(all.insert(key.to_vec(), value.to_vec()).is_none(), "a key was seen twice");
        ControlFlow::Continue(())
    })
    .expect("scan_with works");
    let listed: BTreeMap<_, _> =
        view.scan(&KeyRange::all()).map(|pair| pair.expect("scan works")).collect();
    assert_eq!(listed, all, "scan and scan_with differ");
    let keys: Vec<&[u8]> = all.keys().map(Vec::as_slice).collect();
    let values = view.get_many(&keys).expect("get_many works");
    assert!(values.iter().map(Option::as_ref).eq(all.values().map(Some)), "get and scan differ");
    all
}

fn put(store: &dyn Checkpoint, lsn: u64, entries: &[(&[u8], Option<&[u8]>)]) {
    write(store, lsn, entries).expect("the write succeeds");
}

fn keys(view: &dyn View, range: &KeyRange) -> Vec<Vec<u8>> {
    view.scan(range).map(|pair| pair.expect("scan works").0).collect()
}

fn a_new_store_is_empty(backend: &dyn Backend) {
    let store = backend.open();
    assert_eq!(store.stamp(), None);
    assert_eq!(store.get(b"a").expect("get works"), None);
    assert!(contents(store.as_ref()).is_empty());
    assert_eq!(store.edges(&KeyRange::all()).expect("edges work"), None);
    let snapshot = store.snapshot().expect("a snapshot of nothing is possible");
    assert_eq!(snapshot.stamp(), None);
}

fn a_write_is_there_and_stays_after_reopening(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 5, &[(b"a", Some(b"1")), (b"b", Some(b"")), (b"c", Some(b"3"))]);
    check(store.as_ref());
    drop(store);
    check(backend.open().as_ref());

    fn check(store: &dyn Checkpoint) {
        assert_eq!(store.stamp(), Some(stamp(5)));
        assert_eq!(store.get(b"a").expect("get works").as_deref(), Some(b"1".as_slice()));
        assert_eq!(store.get(b"b").expect("get works").as_deref(), Some(b"".as_slice()));
        assert_eq!(store.get(b"bb").expect("get works"), None);
        assert_eq!(contents(store).len(), 3);
    }
}

fn later_writes_replace_and_delete(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"1")), (b"b", Some(b"2")), (b"c", Some(b"3"))]);
    put(store.as_ref(), 2, &[(b"a", Some(b"9")), (b"b", None), (b"d", Some(b"4"))]);
    let expected: BTreeMap<_, _> = [(b"a", b"9"), (b"c", b"3"), (b"d", b"4")]
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .into();
    assert_eq!(contents(store.as_ref()), expected);
    assert_eq!(store.get(b"b").expect("get works"), None);
    drop(store);
    let store = backend.open();
    assert_eq!(contents(store.as_ref()), expected);
    put(store.as_ref(), 3, &[(b"b", Some(b"again"))]);
    assert_eq!(store.get(b"b").expect("get works").as_deref(), Some(b"again".as_slice()));
}

fn a_write_without_entries_moves_the_stamp(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"1"))]);
    put(store.as_ref(), 7, &[]);
    assert_eq!(store.stamp(), Some(stamp(7)));
    drop(store);
    let store = backend.open();
    assert_eq!(store.stamp(), Some(stamp(7)));
    assert_eq!(contents(store.as_ref()).len(), 1);
}

fn deleting_what_is_not_there_is_fine(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", None), (b"b", None)]);
    assert!(contents(store.as_ref()).is_empty());
    assert_eq!(store.stamp(), Some(stamp(1)));
}

fn refused_writes_change_nothing(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"1"))]);
    let before = contents(store.as_ref());
    let long = vec![b'x'; KEY_BYTES_MAX + 1];
    let descending = write(store.as_ref(), 2, &[(b"c", Some(b"3")), (b"b", Some(b"2"))]);
    assert!(matches!(descending, Err(Error::OutOfOrder { index: 1 })), "{descending:?}");
    let repeated = write(store.as_ref(), 2, &[(b"b", Some(b"2")), (b"b", None)]);
    assert!(matches!(repeated, Err(Error::OutOfOrder { index: 1 })), "{repeated:?}");
    for key in [b"".as_slice(), b"\0x", &long] {
        let refused = write(store.as_ref(), 2, &[(key, Some(b"2"))]);
        assert!(matches!(refused, Err(Error::KeyRefused { index: 0, .. })), "{refused:?}");
    }
    assert_eq!(contents(store.as_ref()), before);
    assert_eq!(store.stamp(), Some(stamp(1)));
    // And the store goes on.
    put(store.as_ref(), 2, &[(b"b", Some(b"2"))]);
    drop(store);
    let store = backend.open();
    assert_eq!(store.stamp(), Some(stamp(2)));
    assert_eq!(contents(store.as_ref()).len(), 2);
}

fn a_failing_source_abandons_the_write(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"1"))]);
    let mut source = [
        Ok(Entry::put(b"a".as_slice(), b"2".as_slice())),
        Err(Error::Corrupt { what: "the source".to_owned() }),
        Ok(Entry::put(b"b".as_slice(), b"2".as_slice())),
    ]
    .into_iter();
    let failed = store.write(&mut source, &stamp(2));
    assert!(matches!(failed, Err(Error::Corrupt { .. })), "{failed:?}");
    assert_eq!(store.stamp(), Some(stamp(1)));
    assert_eq!(contents(store.as_ref()).len(), 1);
    put(store.as_ref(), 3, &[(b"a", Some(b"3"))]);
}

fn the_stamp_never_goes_back(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 5, &[(b"a", Some(b"1"))]);
    let refused = write(store.as_ref(), 4, &[(b"a", Some(b"2"))]);
    assert!(matches!(refused, Err(Error::StampBackwards { stored: 5, new: 4 })), "{refused:?}");
    drop(store);
    let store = backend.open();
    let refused = write(store.as_ref(), 4, &[]);
    assert!(matches!(refused, Err(Error::StampBackwards { stored: 5, new: 4 })), "{refused:?}");
    put(store.as_ref(), 5, &[(b"a", Some(b"3"))]);
    assert_eq!(store.get(b"a").expect("get works").as_deref(), Some(b"3".as_slice()));
}

fn scans_see_their_range_in_order(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"")), (b"h1", Some(b"")), (b"h3", Some(b""))]);
    put(store.as_ref(), 2, &[(b"h2", Some(b"")), (b"p", Some(b""))]);
    let seen = |range: KeyRange| keys(store.as_ref(), &range);
    assert_eq!(seen(KeyRange::prefix(*b"h")), [b"h1", b"h2", b"h3"]);
    assert_eq!(seen(KeyRange::between(*b"h2", *b"p")), [b"h2", b"h3"]);
    assert_eq!(seen(KeyRange::prefix(*b"h").after(b"h1")), [b"h2", b"h3"]);
    assert_eq!(seen(KeyRange::all()).len(), 5);
    assert!(seen(KeyRange::between(*b"p", *b"h")).is_empty());
    assert!(seen(KeyRange::between(*b"b", *b"h")).is_empty());
    // The store's own range is nobody's business.
    assert!(seen(KeyRange::between(*b"\0", *b"\x01")).is_empty());
}

fn a_scan_stops_when_told(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"")), (b"b", Some(b"")), (b"c", Some(b""))]);
    let mut seen = 0;
    let scan = store.scan_with(&KeyRange::all(), &mut |_, _| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    scan.expect("a broken-off scan is no error");
    assert_eq!(seen, 2);
}

fn edges_and_split_cover_the_range(backend: &dyn Backend) {
    let store = backend.open();
    let all: Vec<[u8; 5]> = (0..1_000_u32).map(|n| head(n * 3)).collect();
    let entries: Vec<(&[u8], Option<&[u8]>)> =
        all.iter().map(|key| (key.as_slice(), Some(b"v".as_slice()))).collect();
    put(store.as_ref(), 1, &entries);
    let range = KeyRange::prefix(*b"h");
    let edges = store.edges(&range).expect("edges work").expect("there are entries");
    assert_eq!(edges, (head(0).to_vec(), head(2_997).to_vec()));
    let parts = store.split(&range, 4).expect("split works");
    assert_eq!(parts.len(), 4);
    let counts: Vec<usize> = parts.iter().map(|part| keys(store.as_ref(), part).len()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 1_000);
    assert!(counts.iter().all(|count| (200..300).contains(count)), "{counts:?}");

    fn head(n: u32) -> [u8; 5] {
        let [a, b, c, d] = n.to_be_bytes();
        [b'h', a, b, c, d]
    }
}

fn a_snapshot_keeps_its_state(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"1")), (b"b", Some(b"2"))]);
    let snapshot = store.snapshot().expect("snapshot works");
    let before = contents(snapshot.as_ref());
    for lsn in 2..30 {
        let value = lsn.to_string();
        put(store.as_ref(), lsn, &[(b"a", Some(value.as_bytes())), (b"b", None)]);
        let own = lsn.to_string().into_bytes();
        put(store.as_ref(), lsn, &[(&own, Some(b"new"))]);
    }
    assert_eq!(snapshot.stamp(), Some(stamp(1)));
    assert_eq!(contents(snapshot.as_ref()), before);
    assert_eq!(store.stamp(), Some(stamp(29)));
    drop(store);
    // A view may outlive its store.
    assert_eq!(contents(snapshot.as_ref()), before);
}

fn a_scan_keeps_its_state(backend: &dyn Backend) {
    let store = backend.open();
    put(store.as_ref(), 1, &[(b"a", Some(b"1")), (b"b", Some(b"1")), (b"c", Some(b"1"))]);
    let mut scan = store.scan(&KeyRange::all());
    assert!(scan.next().is_some());
    put(store.as_ref(), 2, &[(b"b", None), (b"c", Some(b"2")), (b"d", Some(b"2"))]);
    let rest: Vec<_> = scan.map(|pair| pair.expect("scan works")).collect();
    assert_eq!(rest, [(b"b".to_vec(), b"1".to_vec()), (b"c".to_vec(), b"1".to_vec())]);
}

fn many_threads_read_while_one_writes(backend: &dyn Backend) {
    const KEYS: u32 = 500;
    let store = backend.open();
    // Every checkpoint gives all keys the value of its lsn: a mixture is a torn read.
    let fill = |lsn: u64| {
        let value = lsn.to_le_bytes();
        let mut entries =
            (0..KEYS).map(|n| Ok(Entry::put(format!("k{n:06}").into_bytes(), value.as_slice())));
        store.write(&mut entries, &stamp(lsn)).expect("the write succeeds");
    };
    fill(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..40 {
                    let view = store.snapshot().expect("snapshot works");
                    let lsn = view.stamp().expect("it was written").lsn.to_le_bytes();
                    let mut seen = 0;
                    view.scan_with(&KeyRange::all(), &mut |_, value| {
                        assert_eq!(value, lsn, "a scan mixed two checkpoints");
                        seen += 1;
                        ControlFlow::Continue(())
                    })
                    .expect("scan works");
                    assert_eq!(seen, KEYS);
                    assert!(store.get(b"k000007").expect("get works").is_some());
                }
            });
        }
        for lsn in 2..40 {
            fill(lsn);
        }
    });
}

fn odd_keys_and_values_survive(backend: &dyn Backend) {
    let store = backend.open();
    let long_key = vec![0xff; KEY_BYTES_MAX];
    let large_value: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let entries: &[(&[u8], Option<&[u8]>)] = &[
        (b"\x01", Some(b"lowest")),
        (b"a", Some(b"\0")),
        (b"a\0", Some(b"")),
        (b"a\0\0", Some(&large_value)),
        (b"b\xff\xff", Some(b"x")),
        (b"\xff", Some(b"y")),
        (&long_key, Some(b"highest")),
    ];
    put(store.as_ref(), 1, entries);
    drop(store);
    let store = backend.open();
    let expected: BTreeMap<Vec<u8>, Vec<u8>> = entries
        .iter()
        .map(|(key, value)| (key.to_vec(), value.unwrap_or_default().to_vec()))
        .collect();
    assert!(contents(store.as_ref()) == expected, "odd keys or values changed");
}

fn many_small_writes_equal_the_model(backend: &dyn Backend) {
    let mut store = backend.open();
    let mut model = BTreeMap::new();
    let mut random = Random(7);
    for lsn in 1..=120 {
        let changes = changes(&mut random, 300, 40);
        apply(&mut model, &changes);
        let entries: Vec<_> =
            changes.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
        put(store.as_ref(), lsn, &entries);
        if lsn % 40 == 0 {
            drop(store);
            store = backend.open();
        }
        if lsn % 10 == 0 {
            assert_eq!(contents(store.as_ref()), model, "after checkpoint {lsn}");
        }
    }
}

/// A list of changes for a write: a put with `Some`, a delete with `None`, sorted.
pub type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// About `count` random changes of `keys` different keys.
pub fn changes(random: &mut Random, keys: u64, count: u64) -> Changes {
    (0..count)
        .map(|_| {
            let key = format!("k{:06}", random.below(keys)).into_bytes();
            let value = (random.below(3) != 0).then(|| {
                let repeat = usize::try_from(random.below(20)).expect("it is below 20");
                random.next().to_le_bytes().repeat(repeat)
            });
            (key, value)
        })
        .collect()
}

/// What a write does, done to a model.
pub fn apply(model: &mut BTreeMap<Vec<u8>, Vec<u8>>, changes: &Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

/// Numbers that look random and repeat exactly (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
