import { useState } from 'preact/hooks';
import { prepare } from '../api.js';
import { below, type Address, pathTo, type DataOf } from '../api-paths.js';
import { howMany, moment, number } from '../format.js';
import { useLoad } from '../load.js';
import { Copy, ErrorNote } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { PageHead, Pairs, Usage } from '../parts/page-head.js';
import { Table } from '../parts/table.js';
import { goTo, linkHere, place, linkTo } from '../routes.js';
import { mayChange, projectPath, projects, loadProjects, seesAll } from '../session.js';
import type { ApiSchemas } from '../api-routes.js';
import { Drawer, DrawerForm } from '../parts/drawer.js';
import { Choice, Field, listIn, TextArea, Tick, useForm, type Bound } from '../parts/form.js';

/** Settings and usage of a project. */
export function ProjectSettings() {
  const base = projectPath();
  const { data, error, reload } = useLoad(base);
  const [isDeleting, setDeleting] = useState(false);
  return (
    <>
      <PageHead title="Project">
        {data && mayChange.value && (
          <>
            <button class="danger" onClick={() => setDeleting(true)}>
              Delete the project…
            </button>
            <a class="button primary" href={linkHere({ edit: '1' })}>
              Edit the project…
            </a>
          </>
        )}
      </PageHead>
      <ErrorNote error={error} onRetry={reload} />
      {data && (
        <Pairs
          of={{
            Name: data.name,
            Id: (
              <>
                <code>{data.id}</code> <Copy text={data.id} what="Id" />
              </>
            ),
            Plan: data.plan,
            'Own limits':
              Object.entries(data.limits)
                .map(([limit, value]) => `${limit} ${number(value)}`)
                .join(', ') || 'none',
            'Allowed domains': data.allowedDomains.join(', ') || 'none',
            'Uploads by apps': data.storage.publishableUploads ? 'publishable keys may upload' : 'secret keys alone',
            Created: moment(data.createdAt),
          }}
        />
      )}
      <Commands of={[prepare('GET', base)]} />
      <ProjectUsage base={base} />
      {data && place.value.query.get('edit') === '1' && mayChange.value && (
        <ProjectEditor path={base} stored={data} onClose={() => goTo(linkHere({ edit: null }))} />
      )}
      {data && isDeleting && (
        <Confirm
          title="Delete the project"
          text="This permanently deletes its documents, users and files."
          name={data.name}
          asksPassword
          request={prepare('DELETE', base)}
          done="The project is deleted"
          onClose={() => setDeleting(false)}
          onDone={() => {
            projects.value = projects.value.filter((each) => each.id !== data.id);
            goTo('#/');
          }}
        />
      )}
    </>
  );
}

/** Counts every collection, so only on request. */
function ProjectUsage({ base }: { base: Address<'/api/projects/{projectId}'> }) {
  const path = below(base, '/usage');
  const [asked, setAsked] = useState(false);
  const { data, error, loading, reload } = useLoad(asked ? path : null);
  return (
    <>
      <h2>Usage</h2>
      {!asked && <button onClick={() => setAsked(true)}>Show usage</button>}
      <ErrorNote error={error} onRetry={reload} />
      {asked && !data && loading && <p class="empty">Counting…</p>}
      {data && (
        <>
          <div class="usages">
            <Usage
              name={howMany(data.documents, 'document')}
              used={data.collections.reduce((sum, { bytes }) => sum + bytes, 0)}
              limit={data.limits.database}
            />
            <Usage name={howMany(data.storage.files, 'file')} used={data.storage.bytes} limit={data.storage.limit} />
            <Usage name="Emails this month" used={data.mail.used} limit={data.mail.limit} isCount />
            <Usage name="Webhooks" used={data.webhooks} limit={data.limits.webhooks} isCount />
          </div>
          <Table
            label="Documents by collection"
            loading={false}
            rows={data.collections}
            keyOf={({ name }) => name}
            empty="No collections."
            columns={[
              { name: 'Collection', show: ({ name }) => name },
              { name: 'Documents', kind: 'number', show: ({ documents }) => number(documents) },
              { name: 'In the trash', kind: 'number', show: ({ trashed }) => number(trashed) },
            ]}
          />
        </>
      )}
      <Commands of={[prepare('GET', path)]} />
    </>
  );
}

const PLANS = [
  ['free', 'free'],
  ['pro', 'pro'],
] as const;
type Limit = keyof ApiSchemas['ProjectDetails']['limits'];
/** Limits in bytes: typed with their unit. */
const SIZES = new Set<Limit>(['storage', 'database']);
const LIMITS: readonly (readonly [name: Limit, label: string])[] = [
  ['mail', 'Emails a month'],
  ['webhooks', 'Webhooks'],
  ['storage', 'Size of all files'],
  ['database', 'Size of all documents'],
  ['streams', 'Open streams'],
  ['userShare', 'Percent of files and documents for one user'],
  ['requests', 'Requests of an IP address'],
  ['userRequests', 'Requests of a user'],
  ['authRequests', 'Sign-ins of an IP address'],
];

type TypedLimits = Readonly<Record<string, string>>;

/** A limit as it is typed: `10 GB` of 10737418240. */
const written = (limit: Limit, value: number | undefined): string =>
  value === undefined ? '' : SIZES.has(limit) ? writeSize(value) : String(value);

/** Settings of a project; plan and limits are for operators who see all projects. Sends what was changed alone. */
function ProjectEditor({
  path,
  stored,
  onClose,
}: {
  path: Address<'/api/projects/{projectId}'>;
  stored: ApiSchemas['ProjectDetails'];
  onClose: () => void;
}) {
  const writtenLimits: TypedLimits = Object.fromEntries(
    LIMITS.map(([limit]) => [limit, written(limit, stored.limits[limit])]),
  );
  const form = useForm({
    name: stored.name,
    origins: stored.allowedDomains.join('\n'),
    plan: stored.plan,
    publishableUploads: stored.storage.publishableUploads,
    limits: writtenLimits,
  });
  const { origins, limits } = form.values;
  const { name, plan, publishableUploads } = form.changed;
  const allowedDomains = listIn(origins);
  const changed = readChanged(limits, stored.limits);
  const wrong = changed.find(([, value]) => Number.isNaN(value));
  const body = {
    ...(name !== undefined && name.trim() !== stored.name && { name: name.trim() }),
    ...(allowedDomains.join('\n') !== stored.allowedDomains.join('\n') && { allowedDomains }),
    ...(plan !== undefined && { plan }),
    ...(publishableUploads !== undefined && { storage: { publishableUploads } }),
    ...(changed.length > 0 && { limits: Object.fromEntries(changed) }),
  };
  const isDirty = Object.keys(body).length > 0;
  return (
    <DrawerForm
      title={`Edit ${stored.name}`}
      requests={isDirty ? [prepare('PATCH', path, { body })] : []}
      done="The project is changed"
      isDirty={isDirty}
      mayGo={isDirty && !wrong}
      onDone={() => {
        void loadProjects();
        onClose();
      }}
      onClose={onClose}
    >
      <Field label="Name" required {...form.at('name')} />
      <TextArea
        label="Allowed domains"
        rows={3}
        hint="Origins of browser apps, one per line."
        {...form.at('origins')}
      />
      <Tick label="Publishable keys may upload files" {...form.at('publishableUploads')} />
      {seesAll.value && (
        <>
          <Choice label="Plan" choices={PLANS} {...form.at('plan')} />
          <OwnLimits {...form.at('limits')} />
          {wrong && <p class="bad">“{limits[wrong[0]]}” is not a size: write 500 MB, 10 GB or a number of bytes.</p>}
        </>
      )}
    </DrawerForm>
  );
}

function readChanged(limits: TypedLimits, stored: ApiSchemas['ProjectDetails']['limits']) {
  return LIMITS.flatMap(([limit]) => {
    const value = limits[limit]!.trim();
    if (value === written(limit, stored[limit])) return [];
    return [[limit, value === '' ? null : SIZES.has(limit) ? readSize(value) : Number(value)] as const];
  });
}

function OwnLimits({ value, onChange }: Bound<TypedLimits>) {
  return (
    <fieldset>
      <legend>Own limits; empty is the plan’s</legend>
      {LIMITS.map(([limit, label]) => (
        <Field
          key={limit}
          label={label}
          isWhole={!SIZES.has(limit)}
          value={value[limit]!}
          {...(SIZES.has(limit) && { hint: 'Such as 10 GB' })}
          onChange={(text) => onChange({ ...value, [limit]: text })}
        />
      ))}
    </fieldset>
  );
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Bytes of a text such as `10 GB` or `1024`; NaN where it is none. A unit is 1,024 of the one before. */
function readSize(text: string): number {
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?$/i.exec(text.trim()) ?? [];
  const power = unit === '' ? 0 : 'KMGT'.indexOf(unit.toUpperCase()) + 1;
  return digits === '' ? Number.NaN : Math.round(Number(digits) * 1024 ** power);
}

/** The bytes in their largest unit that says them exactly. */
function writeSize(bytes: number): string {
  let unit = 0;
  let size = bytes;
  while (size >= 1024 && size % 1024 === 0 && unit < UNITS.length - 1) {
    size /= 1024;
    unit++;
  }
  return unit === 0 ? String(size) : `${size} ${UNITS[unit]!}`;
}

/** One that was not there before: keys are shown once. */
type Made = Extract<DataOf<'POST', '/api/projects'>, { created: true }>;

/** A project with its first two keys, which are shown once. */
export function NewProject({ onClose }: { onClose: () => void }) {
  const form = useForm<{ name: string; plan: 'free' | 'pro' }>({ name: '', plan: 'free' });
  const [made, setMade] = useState<Made | null>(null);
  const { name, plan } = form.values;
  if (made) return <FirstKeys {...made} />;
  return (
    <DrawerForm
      title="New project"
      action="Create the project"
      requests={[prepare('POST', pathTo('/api/projects'), { body: { name: name.trim(), plan } })]}
      done="The project is created"
      isDirty={name !== ''}
      onDone={(answer) => {
        if (answer.created) setMade(answer);
        void loadProjects();
      }}
      onClose={onClose}
    >
      <Field label="Name" required {...form.at('name')} />
      <Choice label="Plan" choices={PLANS} {...form.at('plan')} />
    </DrawerForm>
  );
}

function FirstKeys({ project, keys }: Made) {
  const next = linkTo(['p', project.id, 'collections']);
  return (
    <Drawer title={`Keys of ${project.name}`} onClose={() => goTo(next)}>
      <p>They are shown only once. Use the publishable key in apps and the secret key only on your server.</p>
      <Pairs
        of={{
          Publishable: <KeyText text={keys.publishable} what="Publishable key" />,
          Secret: <KeyText text={keys.secret} what="Secret key" />,
        }}
      />
      <p class="foot">
        <a class="button primary" href={next}>
          Go on to its collections
        </a>
      </p>
    </Drawer>
  );
}

const KeyText = ({ text, what }: { text: string; what: string }) => (
  <>
    <code>{text}</code> <Copy text={text} what={what} />
  </>
);
