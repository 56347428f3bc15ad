/** Drawn for the console on a square of 16, as lines. */
const PATHS = {
  account: 'M8 8a2.8 2.8 0 1 0 0-5.6A2.8 2.8 0 0 0 8 8ZM2.6 14c.5-3 2.6-4.4 5.4-4.4s4.9 1.4 5.4 4.4',
  audit: 'M5.5 4h8M5.5 8h8M5.5 12h8M2 4l.7.7L4 3.300M2 8l.7.7L4 7.300M2 12l.7.7L4 11.3',
  backups: 'M2 3h12v3H2zM3 6v7.500h10V6M6.5 9h3',
  close: 'M4 4l8 8M12 4l-8 8',
  code: 'M5.5 4.500L2 8l3.5 3.500M10.5 4.500L14 8l-3.5 3.500',
  collections: 'M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3',
  documents: 'M2 3h12v10H2zM2 6.500h12M6 6.500V13',
  down: 'M4 6l4 4 4-4',
  files: 'M4 2h5l3.5 3.500V14H4zM9 2v3.500h3.5',
  jobs: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.500V8l2.5 1.5',
  keys: 'M5 13.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM7.2 8.300L13 2.500M10.5 5l2 2',
  mail: 'M2 3.500h12v9H2zM2 4.500l6 4.5 6-4.5',
  menu: 'M2 4h12M2 8h12M2 12h12',
  operators: 'M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM6 8l1.5 1.500L10.5 6.5',
  overview: 'M2 14V8h3v6zM6.5 14V2h3v12zM11 14V5.500h3V14z',
  plus: 'M8 3v10M3 8h10',
  project:
    'M2 5h7M12 5h2M2 11h2M7 11h7M10.5 6.500a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM5.5 12.500a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3Z',
  query:
    'M6 3c-2 0-2 1-2 2.500S3.5 8 2.5 8C3.5 8 4 9 4 10.500S4 13 6 13M10 3c2 0 2 1 2 2.500S12.5 8 13.5 8C12.5 8 12 9 12 10.500S12 13 10 13',
  requests: 'M1.5 8h3l2-5 3 10 2-5h3',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.700L14 14',
  server: 'M2 2.500h12v4.500H2zM2 9h12v4.500H2zM4.5 4.800h.1M4.5 11.200h.1',
  signin: 'M9 2.500h4.500v11H9M2 8h7.500M7 5.500L9.5 8 7 10.5',
  storage:
    'M2.5 4.500c0-1.3 2.5-2 5.5-2s5.5.7 5.5 2-2.5 2-5.5 2-5.5-.7-5.5-2ZM2.5 4.500l1.2 8c.2.8 2 1.3 4.3 1.300s4.1-.5 4.3-1.300l1.2-8',
  users:
    'M6 7.500a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM1.5 13.500c.3-2.8 2-4 4.5-4s4.2 1.2 4.5 4M10.5 3a2.3 2.3 0 0 1 0 4.300M12 9.800c1.5.5 2.3 1.7 2.5 3.7',
  webhooks: 'M5 11a3 3 0 1 1 2.5-4.600M8 5l2.7 4.800M11 8.500a2.6 2.6 0 1 1-1.5 5M4.5 11h5',
} as const;

export type IconName = keyof typeof PATHS;

/** Says nothing to readers of the page: a text or a label stands beside it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="glyph" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
