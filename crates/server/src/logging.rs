//! Log lines on standard error, and traces to a collector when the feature `otel` is built in.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::error::{ConfigError, ServeError};
use crate::settings::{Config, LogFormat};

/// Keeps what must be told to end before the process does.
#[must_use = "dropping it ends the traces"]
pub struct Logging {
    #[cfg(feature = "otel")]
    traces: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Sets up logging for the process. When something else has set it up, that stays.
pub fn init(config: &Config) -> Result<Logging, ServeError> {
    let filter = EnvFilter::try_new(&config.log_level).map_err(|_| ConfigError::Value {
        setting: "log_level",
        must: "a level or a filter such as info,h2=debug",
    })?;
    let lines = match config.log_format {
        LogFormat::Text => {
            fmt::layer().with_ansi(stderr().is_terminal()).with_writer(stderr).boxed()
        }
        LogFormat::Json => fmt::layer().json().with_writer(stderr).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    #[cfg(feature = "otel")]
    {
        let traces = otel::provider(config)?;
        let layer = traces.as_ref().map(otel::layer);
        // Somebody else's logging stays.
        let _set_before = subscriber.with(layer).try_init();
        Ok(Logging { traces })
    }
    #[cfg(not(feature = "otel"))]
    {
        // Somebody else's logging stays.
        let _set_before = subscriber.try_init();
        Ok(Logging {})
    }
}

#[cfg(feature = "otel")]
impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(traces) = &self.traces
            && let Err(error) = traces.shutdown()
        {
            eprintln!("failed to send the last traces: {error}");
        }
    }
}

#[cfg(feature = "otel")]
mod otel {
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_otlp::{SpanExporter, WithExportConfig};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_opentelemetry::OpenTelemetryLayer;

    use crate::error::ServeError;
    use crate::settings::Config;

    pub(super) fn provider(config: &Config) -> Result<Option<SdkTracerProvider>, ServeError> {
        if !config.sends_traces() {
            return Ok(None);
        }
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(&config.otlp_endpoint)
            .build()
            .map_err(|error| ServeError::Traces { reason: error.to_string() })?;
        let resource = Resource::builder().with_service_name("windlass").build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource);
        Ok(Some(provider.build()))
    }

    pub(super) fn layer<S>(
        provider: &SdkTracerProvider,
    ) -> OpenTelemetryLayer<S, opentelemetry_sdk::trace::SdkTracer>
    where
        S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
    {
        tracing_opentelemetry::layer().with_tracer(provider.tracer("windlass"))
    }
}
