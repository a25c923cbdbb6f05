plugins { id("com.android.application") }

android {
    namespace = "tfnlp.app"
    compileSdk = 36

    defaultConfig {
        applicationId = "tfnlp.app"
        minSdk = 24
        targetSdk = 36
        versionCode = 1
        versionName = "1.0"
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
}

dependencies {
    implementation(project(":text"))
    implementation("com.google.ai.edge.litert:litert:2.3.0")
    // PyPI has MediaPipe 1.2; whether Google's Maven has 1.2 of this was not checked.
    implementation("com.google.mediapipe:tasks-text:1.0.0")
}
