import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import type { Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { say, useAction } from '../../parts/basics.js';
import { quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Choice, Field, listIn, TextArea, Tick } from '../../parts/form.js';
import { readSize, writeSize } from './size.js';
import { seesAll } from '../../session.js';

const PLANS = ['free', 'pro'] as const;
type Limit = keyof ApiSchemas['ProjectDetails']['limits'];
/** Limits in bytes: typed with their unit. */
const SIZES = new Set<Limit>(['storage', 'database']);
const LIMITS: readonly (readonly [name: Limit, label: string])[] = [
  ['mail', 'Mails a month'],
  ['webhooks', 'Webhooks'],
  ['storage', 'Size of all files'],
  ['database', 'Size of all documents'],
  ['streams', 'Open streams'],
  ['userShare', 'Percent of files and documents for one user'],
  ['requests', 'Requests of an address'],
  ['userRequests', 'Requests of a user'],
  ['authRequests', 'Sign-ins of an address'],
];

type TypedLimits = Readonly<Record<string, string>>;

/** A limit as it is typed: `10 GB` of 10737418240. */
const written = (limit: Limit, value: number | undefined): string =>
  value === undefined ? '' : SIZES.has(limit) ? writeSize(value) : String(value);

/** Settings of a project; plan and limits are for operators who see all projects. Sends what was changed alone. */
export function ProjectEditor({
  path,
  stored,
  onClose,
  onSaved,
}: {
  path: Address<'/api/projects/{projectId}'>;
  stored: ApiSchemas['ProjectDetails'];
  onClose: () => void;
  onSaved: () => void;
}) {
  const [name, setName] = useState(stored.name);
  const [origins, setOrigins] = useState(stored.allowedDomains.join('\n'));
  const [plan, setPlan] = useState(stored.plan);
  const [mayUpload, setUpload] = useState(stored.storage.publishableUploads);
  const [limits, setLimits] = useState<TypedLimits>(
    Object.fromEntries(LIMITS.map(([limit]) => [limit, written(limit, stored.limits[limit])])),
  );
  const allowedDomains = listIn(origins);
  const changed = readChanged(limits, stored.limits);
  const wrong = changed.find(([, value]) => Number.isNaN(value));
  const body = {
    ...(name.trim() !== stored.name && { name: name.trim() }),
    ...(allowedDomains.join('\n') !== stored.allowedDomains.join('\n') && { allowedDomains }),
    ...(plan !== stored.plan && { plan }),
    ...(mayUpload !== stored.storage.publishableUploads && { storage: { publishableUploads: mayUpload } }),
    ...(changed.length > 0 && { limits: Object.fromEntries(changed) }),
  };
  const isDirty = Object.keys(body).length > 0;
  const [busy, save, error] = useAction(async () => {
    await call('PATCH', path, { body });
    say('The project is changed');
    onSaved();
  });
  const words = [
    body.name !== undefined && `--name ${quote(body.name)}`,
    body.plan !== undefined && `--plan ${body.plan}`,
    ...(body.allowedDomains ?? []).map((origin) => `--allowed-domain ${quote(origin)}`),
    body.storage && `--publishable-uploads ${mayUpload ? 'on' : 'off'}`,
    ...changed.map(([limit, value]) => `--limit ${limit}=${value ?? 'plan'}`),
  ].filter(Boolean);
  const cli = `bsvc project update ${quote(stored.name)} ${words.join(' ')}`;
  return (
    <DrawerForm
      title={`Edit ${stored.name}`}
      action="Save"
      isDirty={isDirty}
      mayGo={isDirty && !wrong}
      busy={busy}
      error={error}
      commands={isDirty ? { cli, method: 'PATCH', path, body } : undefined}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field label="Name" required autocomplete="off" value={name} onText={setName} />
      <TextArea
        label="Allowed domains"
        value={origins}
        rows={3}
        hint="Origins that browsers may call from, one a line."
        onText={setOrigins}
      />
      <Tick label="Publishable keys may upload files" isOn={mayUpload} onTick={setUpload} />
      {seesAll.value && (
        <>
          <Choice label="Plan" value={plan} choices={PLANS.map((each) => [each, each] as const)} onChoose={setPlan} />
          <OwnLimits limits={limits} onChange={setLimits} />
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

function OwnLimits({ limits, onChange }: { limits: TypedLimits; onChange: (limits: TypedLimits) => void }) {
  return (
    <fieldset>
      <legend>Own limits; empty is the plan’s</legend>
      {LIMITS.map(([limit, label]) => (
        <Field
          key={limit}
          label={label}
          autocomplete="off"
          isWhole={!SIZES.has(limit)}
          value={limits[limit]!}
          {...(SIZES.has(limit) && { hint: 'Such as 10 GB' })}
          onText={(text) => onChange({ ...limits, [limit]: text })}
        />
      ))}
    </fieldset>
  );
}
