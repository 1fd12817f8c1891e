//! The live view on a terminal.

use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line as TextLine;
use ratatui::widgets::{Block, Paragraph, Row, Table, TableState};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use windlass_worker::v1;

use super::{Group, Line, Snapshot, groups};
use crate::args::Online;
use crate::failure::Failure;

/// How often the reader of keys looks whether somebody still wants them.
const KEY_POLL: Duration = Duration::from_millis(200);
/// Lines of the screen that are not rows.
const HEAD_LINES: u16 = 2;
/// Room for a count, such as 999,999.
const COUNT_COLUMNS: usize = 7;

enum Input {
    Quit,
    Up,
    Down,
    TogglePause,
    Redraw,
}

/// What the screen shows.
struct Shown {
    address: String,
    snapshot: Option<Snapshot>,
    groups: Vec<Group>,
    selected: TableState,
    /// What went wrong lately; the view goes on and tries again.
    trouble: Option<String>,
}

pub(super) async fn run(online: &Online, interval: Duration, only: &str) -> Result<(), Failure> {
    // Asked once before the terminal changes: a wrong address is an ordinary error.
    online.client.status().await?;
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::io("set up the terminal", error))?;
    let result = watch(online, interval, only, &mut terminal).await;
    ratatui::restore();
    result
}

async fn watch(
    online: &Online,
    interval: Duration,
    only: &str,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), Failure> {
    let (keys, mut pressed) = mpsc::channel(16);
    tokio::task::spawn_blocking(move || read_keys(&keys));
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = Shown {
        address: online.address.clone(),
        snapshot: None,
        groups: Vec::new(),
        selected: TableState::new().with_selected(0),
        trouble: None,
    };
    loop {
        let input = tokio::select! {
            _ = ticks.tick() => None,
            input = pressed.recv() => Some(input.unwrap_or(Input::Quit)),
        };
        match input {
            Some(Input::Quit) => return Ok(()),
            Some(Input::Up) => shown.selected.select_previous(),
            Some(Input::Down) => shown.selected.select_next(),
            Some(Input::TogglePause) => shown.note(toggle_pause(online, &shown).await),
            Some(Input::Redraw) => {}
            None => {
                let looked = look(online, &mut shown, only).await;
                shown.note(looked);
            }
        }
        let drawn = terminal.draw(|frame| shown.draw(frame));
        drawn.map_err(|error| Failure::io("draw", error))?;
    }
}

async fn look(online: &Online, shown: &mut Shown, only: &str) -> Result<(), Failure> {
    let snapshot = Snapshot::take(online, shown.snapshot.as_ref(), only).await?;
    shown.snapshot = Some(snapshot);
    shown.groups = match shown.queue() {
        Some(queue) => groups(online, &queue.queue.name.clone()).await?,
        None => Vec::new(),
    };
    Ok(())
}

async fn toggle_pause(online: &Online, shown: &Shown) -> Result<(), Failure> {
    let Some(line) = shown.queue() else { return Ok(()) };
    let request = v1::PauseQueueRequest {
        tenant: line.queue.tenant.clone(),
        queue: line.queue.name.clone(),
        paused: !line.queue.paused,
    };
    Ok(online.client.pause_queue(request).await?)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here")]
fn read_keys(keys: &mpsc::Sender<Input>) {
    while !keys.is_closed() {
        // A terminal that cannot be read any more is gone.
        match event::poll(KEY_POLL) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(_) => return,
        }
        let input = match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => match key.code {
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Input::Quit,
                KeyCode::Char('q') | KeyCode::Esc => Input::Quit,
                KeyCode::Up | KeyCode::Char('k') => Input::Up,
                KeyCode::Down | KeyCode::Char('j') => Input::Down,
                KeyCode::Char('p') => Input::TogglePause,
                _ => continue,
            },
            Ok(Event::Resize(..)) => Input::Redraw,
            Ok(_) => continue,
            Err(_) => return,
        };
        if keys.blocking_send(input).is_err() {
            return;
        }
    }
}

impl Shown {
    fn note(&mut self, result: Result<(), Failure>) {
        self.trouble = result.err().map(|failure| failure.to_string());
    }

    fn queue(&self) -> Option<&Line> {
        self.snapshot.as_ref()?.queues.get(self.selected.selected()?)
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let queues = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.queues.len());
        let group_lines = u16::try_from(self.groups.len()).unwrap_or(u16::MAX).saturating_add(3);
        let [head, middle, bottom, foot] = Layout::vertical([
            Constraint::Length(HEAD_LINES),
            Constraint::Min(u16::try_from(queues).unwrap_or(u16::MAX).saturating_add(1).min(8)),
            Constraint::Max(group_lines.min(frame.area().height / 2)),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.draw_head(frame, head);
        self.draw_queues(frame, middle);
        self.draw_groups(frame, bottom);
        let keys = "q quit   ↑↓ choose a queue   p pause or resume it";
        let dim = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Paragraph::new(keys).style(dim), foot);
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let summary = self.snapshot.as_ref().map(Snapshot::summary).unwrap_or_default();
        let second = match &self.trouble {
            Some(trouble) => format!("! {trouble}"),
            None => {
                let status = self.snapshot.as_ref().map(|snapshot| &snapshot.status);
                status.map(|status| status.durability.clone()).unwrap_or_default()
            }
        };
        let lines = vec![
            TextLine::styled(format!("windlass {}  {summary}", self.address), bold),
            TextLine::raw(second),
        ];
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn draw_queues(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.snapshot.iter().flat_map(|snapshot| &snapshot.queues).map(Line::cells);
        let counts = Line::HEAD.iter().skip(1).map(|name| name.len().max(COUNT_COLUMNS));
        let counts =
            counts.map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
        let widths = [Constraint::Min(16)].into_iter().chain(counts);
        let table = Table::new(rows.map(Row::new), widths)
            .header(header(Line::HEAD))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, area, &mut self.selected);
    }

    fn draw_groups(&self, frame: &mut Frame<'_>, area: Rect) {
        let name = self.queue().map(|line| line.queue.name.as_str()).unwrap_or_default();
        let title = format!(" groups of {name} (a sample of 1,000 jobs) ");
        let widths = [
            Constraint::Min(16),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(14),
        ];
        let rows = self.groups.iter().map(Group::cells).map(Row::new);
        let table = Table::new(rows, widths)
            .header(header(Group::HEAD))
            .block(Block::bordered().title(title));
        frame.render_widget(table, area);
    }
}

fn header(names: &[&'static str]) -> Row<'static> {
    Row::new(names.to_vec()).style(Style::new().add_modifier(Modifier::BOLD))
}
