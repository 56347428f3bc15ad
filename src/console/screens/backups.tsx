import { prepare } from '../api.js';
import { below, pathTo } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { bytes, howMany, moment, number } from '../format.js';
import { quoteShell } from '../../exchange/shell-word.js';
import { useLoad, type Loaded } from '../load.js';
import { act, Copy } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Empty, PageHead } from '../parts/page-head.js';
import { List, type Column } from '../parts/table.js';
import { mayChange } from '../session.js';

type KeptBackups = ApiSchemas['Backups'];
type Backup = KeptBackups['items'][number];

const PATH = pathTo('/api/admin/backups');
/** A backup that was asked for appears by itself. */
const LOOK_MS = 5_000;

/** The backups that the service keeps. They are restored where it runs. */
export function Backups() {
  const list = useLoad(PATH, LOOK_MS);
  const { data } = list;
  const make = prepare('POST', PATH);
  const canMake = mayChange.value && typeof data?.place === 'string';
  return (
    <>
      <PageHead title="Backups" count={data?.items.length}>
        {canMake && (
          <button
            class="primary"
            onClick={() =>
              void act(make, 'A worker makes the backup and reads it back: it appears here when it is whole')
            }
          >
            Make a backup
          </button>
        )}
      </PageHead>
      {data && <Problems of={data} />}
      {data?.place === null ? <NoPlace /> : <Kept list={list} />}
      <Commands of={[prepare('GET', PATH), ...(canMake ? [make] : [])]} />
    </>
  );
}

function Problems({ of: { isLate, problem, items } }: { of: KeptBackups }) {
  return (
    <>
      {isLate && (
        <p class="trouble" role="alert">
          {items.length === 0
            ? 'Nothing is backed up so far.'
            : 'The last good backup is older than the schedule allows.'}{' '}
          <a href="#/jobs?name=backups.run">See its job</a>
        </p>
      )}
      {problem && (
        <p class="trouble" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

const NoPlace = () => (
  <Empty title="Scheduled backups are off">
    <p>
      Set <code>BSVC_BACKUP_TO</code> to a directory or <code>s3://bucket/prefix</code>. To make one now, run{' '}
      <code>bsvc backup</code>.
    </p>
  </Empty>
);

function Kept({ list }: { list: Loaded<KeptBackups> }) {
  const { data } = list;
  return (
    <>
      {data && (
        <p class="muted">
          Kept in <code>{data.place}</code>, made by the schedule <code>{data.schedule}</code> (UTC), encrypted and read
          back. The newest of {howMany(data.keep.days, 'day')}, {howMany(data.keep.weeks, 'week')} and{' '}
          {howMany(data.keep.months, 'month')} stay.
        </p>
      )}
      <List
        label="Backups"
        of={list}
        keyOf={({ name }) => name}
        empty="No backup yet."
        columns={mayChange.value ? [...COLUMNS, ACTIONS] : COLUMNS}
      />
      <p class="muted">
        Restore a backup on the command line, on a machine with its master key or passphrase:{' '}
        <code>{restore(data?.items[0]?.name ?? 'latest')}</code>
      </p>
    </>
  );
}

const COLUMNS: readonly Column<Backup>[] = [
  { name: 'Name', show: ({ name }) => <code>{name}</code> },
  { name: 'Made', show: ({ at }) => moment(at) },
  { name: 'Size', kind: 'number', show: (backup) => bytes(backup.bytes) },
  { name: 'Documents', kind: 'number', show: ({ verified }) => (verified ? number(verified.documents) : '–') },
  {
    name: 'Read back',
    show: (backup) => <Found of={backup} />,
  },
  {
    name: 'To restore it',
    show: ({ name }) => <Copy text={restore(name)} what={`Command that restores ${name}`} />,
  },
];

function Found({ of: { verified, fault, checkedAt } }: { of: Backup }) {
  if (!verified && fault === null) return <span class="muted">not known</span>;
  const [kind, text] = fault === null ? ['good', 'whole'] : ['bad', 'damaged'];
  return (
    <span class={`tag ${kind}`} title={`${fault ?? 'Read back'}: ${moment(checkedAt)}`}>
      {text}
    </span>
  );
}

const ACTIONS: Column<Backup> = {
  name: 'Actions',
  show: ({ name }) => (
    <span class="row">
      <button class="small" onClick={() => void check(name)}>
        Check<span class="hidden"> {name}</span>
      </button>
      <a class="button small" href={below(PATH, '/{name}/file', { name })} download={name}>
        Download<span class="hidden"> {name}</span>
      </a>
    </span>
  ),
};

const check = (name: string): Promise<void> =>
  act(
    prepare('POST', below(PATH, '/{name}/check', { name })),
    'A worker reads the backup to its end: what it finds appears here',
  );

const restore = (name: string): string => `bsvc restore ${quoteShell(name)}`;
