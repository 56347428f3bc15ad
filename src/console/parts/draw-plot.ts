import UPlot from 'uplot';

export interface Line {
  name: string;
  /** Name of a colour of the style sheet. */
  colour: string;
  values: readonly (number | null)[];
}

const HEIGHT = 150;
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Draws figures into `host`, as wide as it is; returns how to take them away. */
export function drawPlot(
  host: HTMLElement,
  {
    show,
    isBytes,
    fromMs,
    stepMs,
    lines,
    utc,
  }: {
    /** Writes a value beside the axis. */
    show: (value: number) => string;
    /** Its steps are powers of two, as the units of bytes are. */
    isBytes: boolean;
    fromMs: number;
    stepMs: number;
    lines: readonly Line[];
    utc: boolean;
  },
): () => void {
  const times = Array.from({ length: lines[0]?.values.length ?? 0 }, (_, at) => (fromMs + at * stepMs) / 1000);
  const isLong = times.length * stepMs > 2 * 86_400_000;
  const clock = (seconds: number): string => {
    const date = new Date(seconds * 1000);
    const shown = utc ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
    return isLong ? shown.toISOString().slice(5, 10) : shown.toISOString().slice(11, 16);
  };
  const axis = {
    stroke: getComputedStyle(host).color,
    grid: { stroke: colourOf(host, 'grid'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
  };
  const plot = new UPlot(
    {
      width: Math.max(200, host.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        { ...axis, values: (_plot, splits) => splits.map(clock), space: 60, size: 26 },
        {
          ...axis,
          size: 52,
          values: (_plot, splits) => splits.map(show),
          ...(isBytes && { incrs: POWERS_OF_TWO }),
        },
      ],
      series: [
        {},
        ...lines.map((line) => ({
          label: line.name,
          stroke: colourOf(host, line.colour),
          width: 1.5,
          spanGaps: false,
          // A value between two gaps is no line: it is a dot.
          points: {
            show: true,
            size: 4,
            filter: (_plot: unknown, at: number) => listAlone(lines[at - 1]?.values ?? []),
          },
        })),
      ],
    },
    [times, ...lines.map(({ values }) => [...values])],
    host,
  );
  const resize = new ResizeObserver(() => plot.setSize({ width: Math.max(200, host.clientWidth), height: HEIGHT }));
  resize.observe(host);
  return () => {
    resize.disconnect();
    plot.destroy();
  };
}

function colourOf(host: HTMLElement, name: string): string {
  const probe = document.createElement('i');
  probe.className = `swatch ${name}`;
  host.append(probe);
  const value = getComputedStyle(probe).backgroundColor;
  probe.remove();
  return value;
}

function listAlone(values: readonly (number | null)[]): number[] {
  return values.flatMap((value, at) =>
    value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : [],
  );
}
