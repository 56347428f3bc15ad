import type { Attributes, Context, Span, SpanKind } from '@opentelemetry/api';
import { withTimeout } from '../time/with-timeout.js';

export interface SpanOptions {
  kind: 'server' | 'client' | 'consumer';
  attributes?: Attributes;
  /** Headers of the request that asked for it: its `traceparent` says whose part the span is. */
  headers?: Record<string, string | string[] | undefined>;
}

/** Spans by OpenTelemetry, for the SDK that was registered before this process began. */
export interface Telemetry {
  /**
   * Runs `work` within a span, which ends when it has settled; a failure is noted by its kind, never by its words,
   * which may contain personal data.
   */
  span<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T>;
  /** Notes something that has just ended and began at `startMs` (`performance.now()`). */
  note(name: string, options: SpanOptions, startMs: number, error: unknown): void;
  /** Adds the headers by which a receiver can continue the trace. */
  inject(headers: Record<string, string>): void;
  /** Hands over what the SDK still holds, if it can be asked to. */
  flush(): Promise<void>;
}

const FLUSH_MS = 2_000;

/** Null when no SDK is registered, checked once, so that unused spans cost nothing. */
export async function openTelemetry(): Promise<Telemetry | null> {
  if (!isApiLoaded()) return null;
  const otel = await import('@opentelemetry/api');
  const provider = otel.trace.getTracerProvider() as Partial<ProxyProvider>;
  // Until an SDK comes the API's no-op implementation discards everything.
  if (provider.getDelegateTracer && !provider.getDelegateTracer('bsvc')) return null;
  const tracer = otel.trace.getTracer('bsvc');
  const kinds: Record<SpanOptions['kind'], SpanKind> = {
    server: otel.SpanKind.SERVER,
    client: otel.SpanKind.CLIENT,
    consumer: otel.SpanKind.CONSUMER,
  };
  const contextOf = ({ headers }: SpanOptions): Context =>
    headers ? otel.propagation.extract(otel.ROOT_CONTEXT, headers) : otel.context.active();
  const fail = (span: Span, error: unknown): void => {
    span.setAttribute('error.type', kindOf(error));
    span.setStatus({ code: otel.SpanStatusCode.ERROR });
  };
  return {
    async span(name, options, work) {
      const parent = contextOf(options);
      const { kind, attributes } = options;
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, parent);
      try {
        return await otel.context.with(otel.trace.setSpan(parent, span), () => work(span));
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    },
    note(name, { kind, attributes }, startMs, error) {
      const startTime = performance.timeOrigin + startMs;
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes, startTime }, otel.context.active());
      if (error !== undefined) fail(span, error);
      span.end();
    },
    inject: (headers) => otel.propagation.inject(otel.context.active(), headers),
    async flush() {
      const delegate = provider.getDelegate?.() ?? provider;
      const { forceFlush } = delegate as { forceFlush?: () => Promise<void> };
      if (!forceFlush) return;
      await withTimeout(
        forceFlush.call(delegate).catch(() => undefined),
        FLUSH_MS,
        undefined,
      );
    },
  };
}

/** Every copy of the API notes itself under such a name; to load one takes a tenth of a start. */
function isApiLoaded(): boolean {
  const names = Object.getOwnPropertySymbols(globalThis).map(({ description = '' }) => description);
  return names.some((name) => name.startsWith('opentelemetry.js.api.'));
}

/**
 * The part of the API's ProxyTracerProvider that is asked for; the SDK may have brought a copy of the API of its own.
 */
interface ProxyProvider {
  getDelegateTracer(name: string): unknown;
  getDelegate(): object;
}

function kindOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return typeof code === 'string' || typeof code === 'number'
    ? String(code)
    : typeof name === 'string'
      ? name
      : 'Error';
}

/** `work` within a span, or by itself without telemetry. */
export function withSpan<T>(
  telemetry: Telemetry | null | undefined,
  name: string,
  options: SpanOptions,
  work: () => Promise<T>,
): Promise<T> {
  return telemetry ? telemetry.span(name, options, work) : work();
}
