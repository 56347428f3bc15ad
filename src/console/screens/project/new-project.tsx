import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { pathTo, type DataOf } from '../../api-paths.js';
import { Copy, say, useAction } from '../../parts/basics.js';
import { quote } from '../../parts/commands.js';
import { Drawer } from '../../parts/drawer.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Choice, Field } from '../../parts/form.js';
import { goTo, linkTo } from '../../routes.js';
import { loadProjects } from '../../session.js';

const PLANS = [
  ['free', 'free'],
  ['pro', 'pro'],
] as const;

const PATH = pathTo('/api/projects');
/** One that was not there before: keys are told once. */
type Made = Extract<DataOf<'POST', '/api/projects'>, { created: true }>;

/** A project with its first two keys, which are shown once. */
export function NewProject({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [plan, setPlan] = useState<'free' | 'pro'>('free');
  const [made, setMade] = useState<Made | null>(null);
  const body = { name: name.trim(), plan };
  const [busy, create, error] = useAction(async () => {
    const answer = await call('POST', PATH, { body });
    if (answer.created) setMade(answer);
    say('The project is created');
    await loadProjects();
  });
  if (made) return <FirstKeys {...made} onClose={() => goTo(linkTo(['p', made.project.id, 'collections']))} />;
  return (
    <DrawerForm
      title="New project"
      action="Create the project"
      isDirty={name !== ''}
      busy={busy}
      error={error}
      commands={{
        cli: `bsvc project create ${quote(name.trim() || 'shop')} --plan ${plan}`,
        method: 'POST',
        path: PATH,
        body,
      }}
      onSubmit={() => void create()}
      onClose={onClose}
    >
      <Field label="Name" required autocomplete="off" value={name} onText={setName} />
      <Choice label="Plan" value={plan} choices={PLANS} onChoose={setPlan} />
    </DrawerForm>
  );
}

function FirstKeys({ project, keys, onClose }: Pick<Made, 'project' | 'keys'> & { onClose: () => void }) {
  return (
    <Drawer title={`Keys of ${project.name}`} onClose={onClose}>
      <p>They are shown only now. The publishable key is for apps, the secret one for your server alone.</p>
      <dl class="pairs">
        <dt>Publishable</dt>
        <dd>
          <code>{keys.publishable}</code> <Copy text={keys.publishable} what="Publishable key" />
        </dd>
        <dt>Secret</dt>
        <dd>
          <code>{keys.secret}</code> <Copy text={keys.secret} what="Secret key" />
        </dd>
      </dl>
      <p class="foot">
        <a class="button primary" href={linkTo(['p', project.id, 'collections'])}>
          Go on to its collections
        </a>
      </p>
    </Drawer>
  );
}
