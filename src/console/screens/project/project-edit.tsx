import { useState } from 'preact/hooks';
import { api } from '../../api.js';
import { say, Trouble, useAction } from '../../parts/basics.js';
import { Commands, quote } from '../../parts/commands.js';
import { Field, Form, TextArea } from '../../parts/form.js';
import { seesAll } from '../../session.js';

/** A project as its operators see it. */
export interface Details {
  id: string;
  name: string;
  plan: string;
  allowedDomains: string[];
  /** Its own, by name; others are the plan's. */
  limits: Record<string, number>;
}

const PLANS = ['free', 'pro'];
const LIMITS: readonly (readonly [name: string, label: string])[] = [
  ['mail', 'Mails a month'],
  ['webhooks', 'Webhooks'],
  ['storage', 'Bytes of files'],
  ['database', 'Bytes of documents'],
  ['streams', 'Open streams'],
  ['requests', 'Requests of an address'],
  ['authRequests', 'Sign-ins of an address'],
];

/** Settings of a project; plan and limits are for operators who see all projects. Sends what was changed alone. */
export function ProjectEditor({ path, stored, onSaved }: { path: string; stored: Details; onSaved: () => void }) {
  const [name, setName] = useState(stored.name);
  const [origins, setOrigins] = useState(stored.allowedDomains.join('\n'));
  const [plan, setPlan] = useState(stored.plan);
  const [limits, setLimits] = useState<Readonly<Record<string, string>>>(
    Object.fromEntries(LIMITS.map(([limit]) => [limit, String(stored.limits[limit] ?? '')])),
  );
  const allowedDomains = origins
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const changedLimits = LIMITS.flatMap(([limit]) => {
    const value = limits[limit]!.trim();
    return value === String(stored.limits[limit] ?? '') ? [] : [[limit, value === '' ? null : Number(value)] as const];
  });
  const body = {
    ...(name.trim() !== stored.name && { name: name.trim() }),
    ...(allowedDomains.join('\n') !== stored.allowedDomains.join('\n') && { allowedDomains }),
    ...(plan !== stored.plan && { plan }),
    ...(changedLimits.length > 0 && { limits: Object.fromEntries(changedLimits) }),
  };
  const isSame = Object.keys(body).length === 0;
  const [busy, save, error] = useAction(async () => {
    await api('PATCH', path, body);
    say('The project is changed');
    onSaved();
  });
  const words = [
    body.name !== undefined && `--name ${quote(body.name)}`,
    body.plan !== undefined && `--plan ${body.plan}`,
    ...(body.allowedDomains ?? []).map((origin) => `--allowed-domain ${quote(origin)}`),
    ...changedLimits.map(([limit, value]) => `--limit ${limit}=${value ?? 'plan'}`),
  ].filter(Boolean);
  return (
    <>
      <Form onSubmit={() => void save()}>
        <Field label="Name" required autocomplete="off" value={name} onText={setName} />
        <TextArea
          label="Allowed domains: origins that browsers may call from, one a line"
          value={origins}
          rows={3}
          onText={setOrigins}
        />
        {seesAll.value && (
          <>
            <label>
              Plan
              <select value={plan} onChange={(event) => setPlan(event.currentTarget.value)}>
                {PLANS.map((each) => (
                  <option key={each} value={each}>
                    {each}
                  </option>
                ))}
              </select>
            </label>
            <fieldset>
              <legend>Own limits; empty is the plan’s</legend>
              {LIMITS.map(([limit, label]) => (
                <Field
                  key={limit}
                  label={label}
                  autocomplete="off"
                  isWhole
                  value={limits[limit]!}
                  onText={(text) => setLimits({ ...limits, [limit]: text })}
                />
              ))}
            </fieldset>
          </>
        )}
        <Trouble error={error} />
        <button class="primary" disabled={busy || isSame}>
          Save
        </button>
      </Form>
      {!isSame && (
        <Commands
          cli={`bsvc project update ${quote(stored.name)} ${words.join(' ')}`}
          method="PATCH"
          path={path}
          body={body}
        />
      )}
    </>
  );
}
