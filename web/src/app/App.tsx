export function App() {
  return <main>Dragoman</main>;
}
