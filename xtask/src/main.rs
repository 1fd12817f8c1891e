//! Automation of the repository.

#[cfg(feature = "bench")]
mod bench;

fn main() -> std::process::ExitCode {
    #[cfg(feature = "bench")]
    if std::env::args().nth(1).as_deref() == Some("bench-run") {
        return match bench::run(std::env::args().skip(2)) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("bench: {why}");
                std::process::ExitCode::FAILURE
            }
        };
    }
    std::process::ExitCode::SUCCESS
}
