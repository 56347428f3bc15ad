import { useEffect, useRef } from 'preact/hooks';
import { bytes, number } from '../format.js';
import { theme, utc } from '../session.js';

export interface Line {
  name: string;
  /** Name of a colour of the style sheet. */
  colour: string;
  values: readonly (number | null)[];
}

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
  const look = `${theme.value} ${utc.value}`;
  useEffect(() => {
    let destroy: (() => void) | undefined;
    let gone = false;
    void import('./draw-plot.js').then(({ drawPlot }) => {
      if (!gone && host.current) destroy = drawPlot(host.current, { unit, fromMs, stepMs, lines, utc: utc.value });
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
