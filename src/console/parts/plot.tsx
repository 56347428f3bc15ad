import { useEffect, useRef } from 'preact/hooks';
import { bytes, number } from '../format.js';
import { theme, utc } from '../session.js';
import type { Line } from './draw-plot.js';
import { loadPart } from './basics.js';

/** The code that draws: asked for early, it comes beside the figures. */
export const loadDrawing = () => loadPart(() => import('./draw-plot.js'));

/** Figures over time. A moment without figures is a gap, and nothing is drawn across it. */
export function Plot({
  title,
  unit,
  fromMs,
  stepMs,
  lines,
}: {
  title: string;
  unit: string;
  fromMs: number;
  stepMs: number;
  lines: readonly Line[];
}) {
  const host = useRef<HTMLDivElement>(null);
  const now = lines.map((line) => `${line.name} ${lastOf(line.values, unit)}`).join(', ');
  const show = (value: number): string => short(value, unit);
  const look = `${theme.value} ${utc.value}`;
  useEffect(() => {
    let destroy: (() => void) | undefined;
    let gone = false;
    void loadDrawing().then((drawing) => {
      if (gone || !host.current) return;
      destroy = drawing?.drawPlot(host.current, {
        show,
        isBytes: unit === 'bytes',
        fromMs,
        stepMs,
        lines,
        utc: utc.value,
      });
    });
    return () => {
      gone = true;
      destroy?.();
    };
  }, [fromMs, stepMs, lines, look, unit]);
  return (
    <figure>
      <figcaption>
        {title} {unit !== 'bytes' && <span class="muted">({unit})</span>}
        <span class="legend">
          {lines.map((line) => (
            <span key={line.name}>
              <i class={`swatch ${line.colour}`} /> {line.name} <b>{lastOf(line.values, unit)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={host} class="plot" role="img" aria-label={`${title}, now: ${now}`} />
    </figure>
  );
}

function lastOf(values: readonly (number | null)[], unit: string): string {
  const last = values.findLast((value) => value !== null);
  return last === undefined || last === null ? '–' : unit === 'bytes' ? bytes(last) : number(last);
}

function short(value: number, unit: string): string {
  if (unit === 'bytes') return bytes(value);
  return value >= 10_000 ? `${value / 1000}k` : String(Number(value.toPrecision(3)));
}
