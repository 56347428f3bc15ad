import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
} from '@opentelemetry/api';

export interface SeenSpan {
  name: string;
  kind: string;
  traceId: string;
  spanId: string;
  parentId: string | undefined;
  attributes: Attributes;
  failed: boolean;
}

export interface TelemetryDouble {
  /** Spans that have ended, in that order. */
  spans: SeenSpan[];
  flushed: number;
  /** Unregisters it. */
  close(): void;
}

/**
 * What an SDK registers with the API of OpenTelemetry, as small as it can be: spans kept in a list, W3C's
 * `traceparent`, contexts that follow awaits.
 */
export function registerTelemetryDouble(): TelemetryDouble {
  const double: TelemetryDouble = { spans: [], flushed: 0, close: unregister };
  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startSpan: (name: string, options: SpanOptions = {}, parent: Context = context.active()) =>
        startSpan(double, name, options, parent),
      startActiveSpan: () => {
        throw new Error('not asked for by anybody');
      },
    }),
    forceFlush: () => Promise.resolve(void double.flushed++),
  } as never);
  const contexts = new AsyncLocalStorage<Context>();
  context.setGlobalContextManager({
    active: () => contexts.getStore() ?? ROOT_CONTEXT,
    with: (active, work, self, ...given) => contexts.run(active, () => work.apply(self as never, given)),
    bind: (_active, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  propagation.setGlobalPropagator({
    inject(active, carrier) {
      const span = trace.getSpanContext(active);
      if (span) (carrier as Record<string, string>).traceparent = `00-${span.traceId}-${span.spanId}-01`;
    },
    extract(parent, carrier) {
      const header = (carrier as Record<string, unknown>).traceparent;
      const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-\d\d$/.exec(String(header)) ?? [];
      if (!traceId || !spanId) return parent;
      return trace.setSpanContext(parent, { traceId, spanId, traceFlags: 1, isRemote: true });
    },
    fields: () => ['traceparent'],
  });
  return double;
}

function unregister(): void {
  trace.disable();
  context.disable();
  propagation.disable();
}

function startSpan(double: TelemetryDouble, name: string, options: SpanOptions, parent: Context): Span {
  const parentContext = trace.getSpanContext(parent);
  const own: SpanContext = {
    traceId: parentContext?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    traceFlags: 1,
  };
  const seen: SeenSpan = {
    name,
    kind: SpanKind[options.kind ?? SpanKind.INTERNAL],
    traceId: own.traceId,
    spanId: own.spanId,
    parentId: parentContext?.spanId,
    attributes: { ...options.attributes },
    failed: false,
  };
  const span = {
    spanContext: () => own,
    setAttribute(key: string, value: string) {
      seen.attributes[key] = value;
      return span;
    },
    setStatus({ code }: SpanStatus) {
      seen.failed = code === SpanStatusCode.ERROR;
      return span;
    },
    updateName(text: string) {
      seen.name = text;
      return span;
    },
    end: () => void double.spans.push(seen),
    isRecording: () => true,
  };
  return span as unknown as Span;
}
